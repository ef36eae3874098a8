"""Make the environment that the scenarios run in: published packages for LangGraph, and no LangGraph.

python tests/packages/environment.py [FOLDER]      prints the path of its interpreter (default: .venv-packages)

What is there and fits requirements.txt is used again.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / ".venv-packages"
REQUIREMENTS = HERE / "requirements.txt"


def make(folder: Path = FOLDER) -> Path:
    """The interpreter of the environment, which is made first if need be. RuntimeError if pip can't."""
    python = folder / "bin" / "python"
    stamp = folder / "made-for"
    wanted = f"{sys.version} {hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "-r", str(REQUIREMENTS)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"pip could not install {REQUIREMENTS}:\n{done.stdout}{done.stderr}")
    stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    print(make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
