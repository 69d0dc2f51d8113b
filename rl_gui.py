"""Pictures for the notebooks: an environment while it runs, replays, a training run.

    env = gym.make("LunarLander-v3", render_mode="rgb_array")
    render = rl_gui.create_renderer(env)
    env.reset()
    for step in range(200):
        env.step(env.action_space.sample())
        render(f"step {step}")

    rl_gui.replay(env, policy, seed=1)           # last line of a cell: a video with controls

    with rl_gui.training(total_steps) as progress:
        progress(step, episode_return=mean_return, kl=kl)

Live pictures do nothing, quietly and quickly, where nobody watches (grading, CI, scripts).
The rooms behind this face are in the package rl_pictures/, which travels with it.
"""

from rl_pictures import episodes
from rl_pictures.doctor import doctor
from rl_pictures.figures import explore, use_style
from rl_pictures.gl import forget_missing_library
from rl_pictures.live import Renderer
from rl_pictures.progress import Training

# The one thing done at import: it must come before the first environment is made, and that imports mujoco.
forget_missing_library()

__all__ = ["create_renderer", "doctor", "explore", "improvement", "replay", "training", "use_style"]


def create_renderer(env, fps=None, figsize=(4, 3), mode="auto", record=False):
    """-> render; call `render(text="")` after every step to see the environment, with `text` as its caption.

    env      an environment made with render_mode="rgb_array": plain, wrapped, or a vector env (shown: its first member)
    fps      steps per second to show; None: what the environment says of itself. Frames that come too late are dropped
    figsize  (width, height) in inches of 100 pixels
    mode     "auto"; or for MuJoCo "gl" (OpenGL) or "sketch" (needs none); "env" always calls env.render()
    record   keep every frame, also where nobody watches: render.replay() then gives a video, render.save(path) a file
    raises   ValueError  the environment cannot be drawn into an array; the message says how to make one that can
    """
    return Renderer(env, fps=fps, figsize=figsize, mode=mode, record=record)


def replay(env, policy=None, seed=None, max_steps=1000, fps=None, mode="auto", figsize=(4, 3), caption=""):
    """Run one episode -> a video that shows itself as the last line of a cell; .episode_return, .steps, .save(path).

    env        made with render_mode="rgb_array"; of a vector env the first member is filmed
    policy     observation -> action (a number, array or tensor); None: random actions. A vector env: batch -> batch
    seed       of env.reset, and of the random actions
    max_steps  the video ends here if the episode does not end before
    caption    written onto the frames
    size       at most 300 kB: longer videos are compressed more strongly
    """
    return episodes.replay(env, policy, seed, max_steps, fps, mode, figsize, caption)


def improvement(env, policies, seed=None, max_steps=300, fps=None, mode="auto", figsize=(4, 3)):
    """A video of a policy getting better: one episode for each of its checkpoints, one after the other.

    policies   {label: policy}, for example {"untrained": p0, "after 100k steps": p1}; the label is put onto the frames
    the rest   as in replay
    """
    return episodes.improvement(env, policies, seed, max_steps, fps, mode, figsize)


def training(total_steps, title=""):
    """-> progress; call `progress(step, episode_return=..., kl=..., ...)` as often as you like while training.

    Shows a status line at most 5 times a second (steps, metrics, steps per second, time left) and learning curves at
    most once a second, in one output that is still there when the notebook is reopened. Plain lines, 5 s apart, where
    nobody watches. Any metric gets a panel; the usual ones are episode_return (drawn with a moving average), kl,
    clipfrac, entropy and explained_variance. nan is left out. `progress.history[name]` is ([steps], [values]).
    Use it in a `with` block, or let the step reach total_steps, so that the last state is shown.

    total_steps  environment steps of the whole run
    title        put before the status line
    """
    return Training(total_steps, title)
