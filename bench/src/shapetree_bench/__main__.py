"""`python -m shapetree_bench` is the command `shapetree-bench`."""

from shapetree_bench._cli import main

main()
