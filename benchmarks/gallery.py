"""Executes the solution notebooks and writes what an instructor will see students see: docs/gallery/NAME.html.

    python -m benchmarks.gallery [NAME ...] [--short]

Pages hold prose, code, plots and replays, and stay below 500 kB: plots have 32 colours, CSS is our own.
"""

import argparse
import base64
import io
import os
import re
import subprocess
import sys
import time

from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image

from grading import notebooks

OUT = notebooks.ROOT / "docs" / "gallery"
MAX_BYTES = 500_000
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<script>MathJax = {{tex: {{inlineMath: [["$", "$"]]}}}}</script>
<script async src="https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-mml-chtml.js"></script>
<style>
body {{ max-width: 860px; margin: 2em auto; padding: 0 1em; font: 16px/1.55 system-ui, sans-serif }}
body {{ color: #1a1a1a; background: #fff }}
pre {{ font: 13px/1.45 ui-monospace, monospace; background: #f6f6f6; padding: 8px 12px; white-space: pre-wrap }}
table {{ border-collapse: collapse }} td, th {{ padding: 3px 10px; border-bottom: 1px solid #ddd }}
img, video {{ max-width: 100% }} summary {{ cursor: pointer }} .prompt, .anchor-link {{ display: none }}
.output pre {{ background: none; border-left: 3px solid #ccc }}
{pygments}
</style></head><body>
<p><small>{title}, executed headless in {seconds:.0f} s at commit {commit}.</small></p>
{body}
</body></html>
"""


def execute(name, short):
    """The solution notebook with outputs, and the seconds that it took."""
    notebook = notebooks.read(notebooks.solution_path(name))
    environment = {**os.environ, "PYTHONPATH": str(notebooks.ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    if short:
        environment["RL_KIT_SHORT"] = "1"
    started = time.perf_counter()
    client = NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(notebooks.SOLUTIONS)}})
    client.execute(env=environment)
    return notebook, time.perf_counter() - started


def page(name, notebook, seconds):
    """The HTML of an executed notebook."""
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"(?<=data:image/png;base64,)[A-Za-z0-9+/=\s]+", lambda found: reduced(found[0]), body)
    body = re.sub(r'<span class="(?:n|p|w|nn)">([^<]*)</span>', r"\1", body)  # names and brackets have no colour anyway
    from pygments.formatters import HtmlFormatter
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=notebooks.ROOT, capture_output=True, text=True)
    return PAGE.format(title=name, body=body, seconds=seconds, commit=commit.stdout.strip() or "unknown",
                       pygments=HtmlFormatter(style="default").get_style_defs(".highlight"))


def reduced(png):
    """A plot in 32 colours; lines and text stay sharp, the file shrinks to a third."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB").quantize(32).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", default=notebooks.assignments(), help="assignments (default: all)")
    parser.add_argument("--short", action="store_true", help="rehearse: tiny budgets, nothing is learned")
    parser.add_argument("--out", type=notebooks.Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    too_large = 0
    for name in arguments.names:
        notebook, seconds = execute(name, arguments.short)
        html = page(name, notebook, seconds)
        path = arguments.out / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        size = len(html.encode())
        too_large += size > MAX_BYTES
        print(f"{path}: {size / 1000:.0f} kB in {seconds:.0f} s" + (" (too large)" if size > MAX_BYTES else ""))
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
