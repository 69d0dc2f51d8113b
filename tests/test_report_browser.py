"""A failing report in a real JupyterLab: light, dark, and in a notebook that the browser does not trust."""

import os
import shutil

import nbformat
import pytest
from test_rl_gui_browser import jupyter_lab, missing, open_notebook, page_of

from grading import notebooks

ANSWER = """
def compute_advantages(self, states, rewards, next_states, terminations, truncations=None):
    with torch.no_grad():
        v, next_v = (self.critic(x).reshape(-1, self.num_steps) for x in (states, next_states))
    r, d = rewards.reshape(-1, self.num_steps), terminations.reshape(-1, self.num_steps)
    advantages = r + self.gamma * (1 - d) * next_v - v
    for t in reversed(range(self.num_steps - 1)):
        advantages[:, t] += self.gamma * self.lmbda * advantages[:, t + 1]
    return advantages.reshape(-1), (advantages + v).reshape(-1)


PPO.compute_advantages = compute_advantages
""".strip()
REPORT = ".jp-OutputArea-output div[style*='max-width']"
# Contrast of every text in the report with the first opaque background behind it, worst first.
CONTRAST = """
(report) => {
  const rgb = (colour) => (colour.match(/[0-9.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const part = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const paper = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > 0.99) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of report.querySelectorAll('*')) {
    const text = [...node.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join('');
    if (!text) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(paper(node))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), text]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """{light, dark, untrusted: (text of the report, contrasts)} and the saved notebook."""
    reason = missing()
    if reason and not ({"CI", "REQUIRE_BROWSER"} & os.environ.keys()):
        pytest.skip(reason)
    assert not reason, reason
    folder = tmp_path_factory.mktemp("lab")
    notebook = notebooks.read(notebooks.RELEASES / "02_lunar_lander.ipynb")
    wanted = ("setup", "imports", "ppo-class", "compute_advantages", "test_compute_advantages")
    notebook.cells = [cell for cell in notebook.cells if cell.id in wanted]
    notebook.cells[-2].source = ANSWER
    nbformat.write(notebook, folder / "seen.ipynb")
    looks = {}
    with jupyter_lab(folder) as address, page_of(folder / "profile") as page:
        def look(name):
            page.evaluate("jupyterapp.shell.currentWidget.content.scrollToItem(4)")
            report = page.wait_for_selector(REPORT, timeout=90_000)
            looks[name] = report.inner_text(), report.evaluate(CONTRAST)
            if shots := os.environ.get("REPORT_SCREENSHOTS"):
                page.screenshot(path=f"{shots}/{name}.png")
        open_notebook(page, address)
        page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        look("light")
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.evaluate("jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
        page.wait_for_timeout(2000)
        look("dark")
        page.evaluate("jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Light'})")
        page.wait_for_timeout(1000)
        edited = nbformat.read(folder / "seen.ipynb", as_version=4)
        edited.cells[0].source += "\n# edited on another machine: the signature does not fit any more"
        nbformat.write(edited, folder / "seen.ipynb")
        shutil.rmtree(folder / ".jupyter", ignore_errors=True)
        open_notebook(page, address)
        look("untrusted")
    return looks, edited


@pytest.mark.parametrize("look", ["light", "dark", "untrusted"])
def test_the_report_says_everything_in_every_look(seen, look):
    text, _ = seen[0][look]
    for words in ("3 of 11 checks pass", "✘ FAIL", "✔ PASS", "advantages[t=0, env=1] = -2.80469, expected -3",
                  "difference", "env \\ t", "Likely mistake."):
        assert words in text


@pytest.mark.parametrize("look", ["light", "dark", "untrusted"])
def test_every_text_of_the_report_is_readable(seen, look):
    worst, text = seen[0][look][1][0]
    assert worst >= 4.5, f"{text!r} has a contrast of {worst:.1f}"


def test_the_saved_notebook_has_one_report_and_one_short_line_of_error(seen):
    outputs = seen[1].cells[-1].outputs
    assert [output.output_type for output in outputs] == ["display_data", "error"]
    assert len(outputs[1].traceback) == 1
    assert "Likely mistake" in outputs[0].data["text/plain"]
    assert len(outputs[0].data["text/html"]) < 25_000
