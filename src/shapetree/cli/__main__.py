"""`python -m shapetree.cli` is the command `shapetree`."""

from shapetree.cli import main

if __name__ == "__main__":
    main()
