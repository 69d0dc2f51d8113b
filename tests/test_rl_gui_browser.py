"""rl_gui in a real JupyterLab in headless Chromium: what a student sees, and what the saved notebook keeps.

Skipped with a reason where playwright or Chromium is missing, except in CI (CI or REQUIRE_BROWSER set), where it fails.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
MEASURE = "MEASURE" in os.environ
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update"]

SETUP = """
import json, time
import gymnasium as gym
import rl_gui

def watch(env_id, fps, steps):
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    env.action_space.seed(0)
    render = rl_gui.create_renderer(env, fps=fps)
    render("warm up")
    drawing, draw = [0.0, 0], env.unwrapped.render
    def timed():
        began = time.process_time()
        picture = draw()
        drawing[0] += time.process_time() - began
        drawing[1] += 1
        return picture
    env.unwrapped.render = timed
    stepping, began, cpu = 0.0, time.perf_counter(), time.process_time()
    for step in range(steps):
        before = time.process_time()
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
        stepping += time.process_time() - before
        render(f"{env_id} step {step}")
    wall = time.perf_counter() - began
    spent = time.process_time() - cpu - stepping - drawing[0]
    with open(f"{env_id}.json", "w") as file:
        json.dump({"steps_per_s": steps / wall, "wall": wall, "cpu_ms_per_step": 1000 * spent / steps}, file)
"""
TRAIN = """
total = 40_000
with rl_gui.training(total, "a pretended run") as progress:
    for step in range(0, total + 1, 200):
        progress(step, episode_return=step / 100, kl=0.01, clipfrac=0.1, entropy=1.3, explained_variance=step / total)
        time.sleep(0.02)
"""
REPLAY = 'rl_gui.replay(gym.make("LunarLander-v3", render_mode="rgb_array"), seed=1, max_steps=100)'
CELLS = {
    "setup": SETUP,
    "lander": 'watch("LunarLander-v3", 60, 300)',
    "ant": 'watch("Ant-v5", 60, 300)',
    "train": TRAIN,
    "replay": REPLAY,
}
WANTED = {"LunarLander-v3": 50, "Ant-v5": 40}  # pictures a second, in the cells 1 and 2
RUN_AGAIN = """async ([index, name]) => {
  delete shown[name];
  jupyterapp.shell.currentWidget.content.activeCellIndex = index;
  await jupyterapp.commands.execute('notebook:run-cell');
}"""
# Counts pictures that reached the screen: the live image is looked at on every animation frame.
COUNT_FRAMES = """
window.shown = {};
const seen = {};
const look = () => {
  for (const image of document.querySelectorAll('img[src^="data:image/jpeg"]')) {
    const name = image.alt.split(' ')[0];
    if (!image.complete || seen[name] === image.src) continue;
    seen[name] = image.src;
    (shown[name] ||= []).push(performance.now());
  }
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def missing():
    """Why there is no browser to test with; "" if there is one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed (pip install playwright)"
    return "" if chromium() else "no Chromium in PATH (CHROMIUM names another place)"


def chromium():
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextlib.contextmanager
def jupyter_lab(folder):
    """A JupyterLab in `folder` -> its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--no-browser",
        "--allow-root",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
    ]
    options += ["--ServerApp.password=", "--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={folder}"]
    private = {
        name: str(folder / ".jupyter" / name) for name in ("JUPYTER_CONFIG_DIR", "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR")
    }
    environment = {
        **os.environ,
        **private,
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / ".jupyter"),
        "PYTHONPATH": str(ROOT),
    }
    for name in ("RL_GUI", "NBGRADER_EXECUTION"):
        environment.pop(name, None)
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/api", timeout=2):
                break
            assert server.poll() is None, (folder / "lab.log").read_text()[-2000:]
            time.sleep(0.2)
        yield address
    finally:
        server.terminate()
        server.wait(20)


@contextlib.contextmanager
def page_of(profile):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch_persistent_context(
            str(profile), executable_path=chromium(), args=FLAGS, viewport={"width": 1100, "height": 1200}
        )
        try:
            yield browser.new_page()
        finally:
            browser.close()


def open_notebook(page, address):
    page.goto(f"{address}/lab/tree/seen.ipynb")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function("window.jupyterapp && jupyterapp.shell.currentWidget && jupyterapp.shell.currentWidget.context")
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.ready")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Runs the notebook once in the browser -> what was measured, saved, and is there after reopening."""
    reason = missing()
    if reason and not ({"CI", "REQUIRE_BROWSER"} & os.environ.keys()):
        pytest.skip(reason)
    assert not reason, reason
    folder = tmp_path_factory.mktemp("lab")
    cells = [nbformat.v4.new_code_cell(source.strip(), id=name) for name, source in CELLS.items()]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "seen.ipynb")
    with jupyter_lab(folder) as address, page_of(folder / "profile") as page:
        open_notebook(page, address)
        page.evaluate(COUNT_FRAMES)
        page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.wait_for_selector("video", timeout=120_000)
        shown = {name: page.evaluate("name => shown[name]", name) for name in WANTED}
        for index, (name, wanted) in enumerate(WANTED.items(), start=1):
            for _ in range(2):  # another program may have wanted the processor: the best of three counts
                if rate(shown[name]) < wanted:
                    page.evaluate(RUN_AGAIN, [index, name])
                    shown[name] = max(shown[name], page.evaluate("name => shown[name]", name), key=rate)
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_timeout(1000)
        page.screenshot(path=os.environ.get("RL_GUI_SCREENSHOT", folder / "running.png"))
        open_notebook(page, address)
        # JupyterLab makes only the cells that are on the screen; scrolling to the last one makes them all.
        page.evaluate("jupyterapp.shell.currentWidget.content.scrollToItem(4)")
        page.wait_for_selector("video", timeout=30_000)
        reopened = page.inner_html("body")
    saved = nbformat.read(folder / "seen.ipynb", as_version=4)
    measured = {name: json.loads((folder / f"{name}.json").read_text()) for name in WANTED}
    return {"shown": shown, "measured": measured, "saved": saved, "reopened": reopened}


def rate(times):
    """Moments in milliseconds -> how many a second."""
    return (len(times) - 1) / (times[-1] - times[0]) * 1000


def html_of(seen, cell_id):
    cell = next(cell for cell in seen["saved"].cells if cell.id == cell_id)
    return [output["data"]["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]


@pytest.mark.parametrize("env_id", WANTED)
def test_steps_are_paced_and_shown(seen, env_id):
    """Any machine: never faster than asked for, and a picture that moves. MEASURE=1 on an idle one: the rates wanted."""
    paced, shown = seen["measured"][env_id]["steps_per_s"], rate(seen["shown"][env_id])
    assert paced <= 61
    assert shown >= 10
    if MEASURE:
        print(f"{env_id}: {paced:.1f} steps/s, {shown:.1f} frames/s shown")
        assert paced >= 57
        assert shown >= WANTED[env_id]


@pytest.mark.parametrize("env_id", WANTED)
def test_showing_a_frame_costs_the_kernel_little(seen, env_id):
    assert seen["measured"][env_id]["cpu_ms_per_step"] <= (3 if MEASURE else 10)


@pytest.mark.parametrize("cell_id", ["lander", "ant"])
def test_the_saved_notebook_keeps_the_last_frame_only(seen, cell_id):
    (last,) = html_of(seen, cell_id)
    assert "step 299" in last
    assert last.count("<img") == 1 and len(last) < 40_000


def test_a_reopened_notebook_still_shows_curves_status_and_replay(seen):
    (progress,) = html_of(seen, "train")
    assert "40,000 of 40,000 steps (100%)" in progress and "data:image/png" in progress
    (video,) = html_of(seen, "replay")
    assert "<video controls" in video and "data:video/mp4" in video
    assert "40,000 of 40,000 steps (100%)" in seen["reopened"] and "data:video/mp4" in seen["reopened"]


def test_no_cell_writes_to_stderr_or_fails(seen):
    outputs = [output for cell in seen["saved"].cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
