"""The README's code runs and prints what it says, and its links lead to files."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_code_prints_what_the_readme_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(code, {})
    (said,) = re.findall(r"```\n(Predicted .*?)```", README, re.DOTALL)
    assert capsys.readouterr().out == said
    assert {path.name for path in tmp_path.iterdir()} == {"tree.png", "tree.html"}


def test_links_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []
