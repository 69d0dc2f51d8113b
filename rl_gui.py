"""Pictures for the notebooks: an environment while it runs.

    env = gym.make("LunarLander-v3", render_mode="rgb_array")
    render = rl_gui.create_renderer(env)
    env.reset()
    for step in range(200):
        env.step(env.action_space.sample())
        render(f"step {step}")

Everything here does nothing, quietly and quickly, where nobody watches (grading, CI, scripts).
The rooms behind this face are in the package rl_pictures/, which travels with it.
"""

from rl_pictures.live import Renderer

__all__ = ["create_renderer"]


def create_renderer(env, fps=None, figsize=(4, 3)):
    """-> render; call `render(text="")` after every step to see the environment, with `text` as its caption.

    env      an environment made with render_mode="rgb_array": plain, wrapped, or a vector env (its first member is shown)
    fps      steps per second to show; None: what the environment says of itself. Frames that come too late are dropped
    figsize  (width, height) in inches of 100 pixels
    raises   ValueError  the environment cannot be drawn into an array
    """
    return Renderer(env, fps=fps, figsize=figsize)
