"""Running a policy for the camera."""

import contextlib

import numpy as np

from rl_pictures.frames import check_render_mode, frame_source, frames_per_second
from rl_pictures.video import Recorder, ReplayOfEpisode


def record_episode(env, policy, recorder, frame, seed, max_steps, caption=""):
    """Run one episode, at most `max_steps` long, into `recorder`; -> its return (the sum of rewards).

    In a vector env all members run and the first is filmed; `policy` then gets and gives batches.
    """
    vector = hasattr(env, "num_envs")
    action_space = env.action_space
    observation, _ = env.reset(seed=seed)
    if seed is not None:
        action_space.seed(seed)
    total = 0.0
    recorder.add(frame(), caption)
    for _ in range(max_steps):
        action = action_space.sample() if policy is None else as_action(policy(observation), action_space)
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward[0] if vector else reward)
        # A vector env resets in the same step: the last picture of the episode is gone, so nothing is drawn.
        over = bool(np.ravel(terminated)[0] or np.ravel(truncated)[0])
        if not (over and vector):
            recorder.add(frame(), caption)
        if over:
            break
    return total


def as_action(action, space):
    """What a policy gave (number, array or tensor, on any device) -> what env.step takes."""
    if hasattr(action, "detach"):
        action = action.detach().cpu().numpy()
    if np.issubdtype(getattr(space, "dtype", None) or float, np.integer) and np.size(action) == 1 and space.shape == ():
        return int(np.ravel(action)[0])
    return np.asarray(action, dtype=space.dtype).reshape(space.shape)


def replay(env, policy=None, seed=None, max_steps=1000, fps=None, mode="auto", figsize=(4, 3), caption=""):
    """One episode -> ReplayOfEpisode. The arguments are explained in rl_gui.replay."""
    check_render_mode(env)
    recorder = Recorder(frames_per_second(env, fps))
    with contextlib.closing(frame_source(env, mode, figsize)) as frame:
        total = record_episode(env, policy, recorder, frame, seed, max_steps, caption)
    about = f"{caption}: " if caption else ""
    return ReplayOfEpisode(recorder.finish(f"{about}return {total:.1f} in {recorder.steps - 1} steps"), total)


def improvement(env, policies, seed=None, max_steps=300, fps=None, mode="auto", figsize=(4, 3)):
    """One episode per checkpoint -> one Replay. The arguments are explained in rl_gui.improvement."""
    check_render_mode(env)
    recorder = Recorder(frames_per_second(env, fps))
    returns = {}
    with contextlib.closing(frame_source(env, mode, figsize)) as frame:
        for label, policy in dict(policies).items():
            returns[label] = record_episode(env, policy, recorder, frame, seed, max_steps, caption=str(label))
    about = "; ".join(f"{label}: return {total:.0f}" for label, total in returns.items())
    return recorder.finish(about)
