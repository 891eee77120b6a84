"""Run the notebooks of examples/ and keep what they show: python -m tools.run_notebooks [NAME...]

Each runs from its beginning in a folder of its own, with the demo collection, offline. What changes from one
run to the next (times, counters, the version of Python) is left out, so that the files change only when what
they show does.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS = 300
"""For one cell, on a machine that has other things to do."""


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with what its cells give now; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
    for place, cell in enumerate(notebook.cells):
        cell.id = f"cell-{place}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
                output.pop("metadata", None) if output.output_type == "stream" else None
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What its cells show as text."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                found.append(str(output.text))
            elif output.output_type in ("execute_result", "display_data"):
                text = str(output.data.get("text/plain", ""))
                found.append(text if "object at 0x" not in text and "alt." not in text else "a chart")
    return found


def main(names: list[str]) -> None:
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(executed(path), path)
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
