"""Fast vector environments, all with SAME_STEP autoreset.

    envs = make_envs("Ant-v5", num_envs=64, seed=0)
    obs, infos = envs.reset()
    obs, rewards, terminated, truncated, infos = envs.step(actions)

N environments step together; where an episode ends, its environment is reset within the same step:
    obs                 [N, D]  what the policy sees next: after an end, the first observation of the new episode
    rewards             [N] float64
    terminated          [N] bool  the episode has ended: nothing follows
    truncated           [N] bool  the time limit has cut it: it would have gone on
    infos["final_obs"]  [N] object array, infos["_final_obs"] [N] bool says where: the true last observations
    infos["episode"]    {"r": [N], "l": [N]}, infos["_episode"] [N] bool says where: returns and lengths of ended episodes
The last two are there only in a step in which an episode ended.

MuJoCo robots run on threads, CartPole in numpy, everything else is Gymnasium's own code; all give the numbers that
Gymnasium's SyncVectorEnv gives (tests/test_rl_envs.py). The rooms behind this face are in rl_worlds/.
"""

import difflib

import gymnasium as gym

from rl_worlds.cartpole import CartPole
from rl_worlds.gymnasium_envs import GymnasiumEnvs
from rl_worlds.normalize import Normalized
from rl_worlds.robots import ROBOTS, Robots

__all__ = ["Normalized", "make_envs"]


def make_envs(env_id, num_envs, seed=0, threads=None):
    """`num_envs` environments that step together -> gymnasium VectorEnv with SAME_STEP autoreset.

    env_id    a registered id: "Ant-v5", "HalfCheetah-v5", "Humanoid-v5", "CartPole-v1", "LunarLander-v3", ...
    seed      of the first reset() without a seed: environment i starts from seed + i; also seeds action_space.sample()
    threads   for MuJoCo robots: how many step at the same time; None: one per core
    raises    ValueError  the id is unknown, or num_envs is not a positive whole number
    """
    spec = _spec(env_id)
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise ValueError(f"num_envs={num_envs!r}: there must be 1 environment or more")
    if spec.id in ROBOTS:
        return Robots(spec.id, num_envs, seed, threads)
    if spec.id == "CartPole-v1":
        return CartPole(spec.id, num_envs, seed)
    return GymnasiumEnvs(spec.id, num_envs, seed)


def _spec(env_id):
    """The registered spec, or a ValueError that says which ids come close."""
    try:
        return gym.spec(env_id)
    except (gym.error.Error, AttributeError, TypeError) as error:
        near = difflib.get_close_matches(str(env_id), gym.registry, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ", see gymnasium.pprint_registry()"
        raise ValueError(f"env_id={env_id!r} is not a registered environment{hint}") from error
