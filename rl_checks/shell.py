"""Runs the main() of a notebook from a shell.

    python -m rl_checks.shell 03_ppo_details.ipynb --total-timesteps 60000

Executes the cells that define things, not those that check, train or plot, and hands the flags to the notebook's main().
"""

import json
import sys
import types


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        raise SystemExit("usage: python -m rl_checks.shell NOTEBOOK.ipynb [flags]    (--help after the notebook shows them)")
    path, *flags = arguments
    module = types.ModuleType("notebook")
    sys.modules["notebook"] = module  # dataclasses look their module up
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    for cell in cells:
        if defines(cell):
            code = compile("".join(cell["source"]), f"<{path}: {cell.get('id', '')}>", "exec")
            exec(code, module.__dict__)
    if "main" not in module.__dict__:
        raise SystemExit(f"{path} defines no main()")
    module.main(flags)


def defines(cell):
    """A code cell that only defines things: no check, nothing live."""
    metadata = cell.get("metadata", {})
    check = metadata.get("nbgrader", {}).get("grade") and not metadata["nbgrader"].get("solution")
    return cell["cell_type"] == "code" and not check and "live" not in metadata.get("tags", [])


if __name__ == "__main__":
    main(sys.argv[1:])
