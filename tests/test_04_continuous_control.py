"""The given parts of 04_continuous_control: training, evaluating, saving. Two tiny updates, nothing is learned."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import rl_envs
from grading import solutions


@pytest.fixture(scope="module")
def robots():
    return solutions.load("04_continuous_control")


@pytest.fixture(scope="module")
def settings(robots):
    return robots["Settings"]().for_rehearsal()


@pytest.fixture(scope="module")
def run(robots, settings):
    return robots["train"](settings, device="cpu")


def test_a_run_has_one_number_of_every_metric_for_each_update(run, settings):
    assert run.steps == settings.total_steps == 2 * settings.num_envs * settings.num_steps
    assert {len(numbers) for numbers in run.metrics.values()} == {2}
    assert {"kl", "clipfrac", "learning_rate", "std"} <= run.metrics.keys()
    assert len(run.returns) == len(run.end_steps)


def test_the_same_seed_gives_the_same_run(robots, run, settings):
    again, other = robots["train"](settings, device="cpu"), robots["train"](replace(settings, seed=2), device="cpu")
    for name, tensor in run.policy.state_dict().items():
        assert torch.equal(tensor, again.policy.state_dict()[name])
    assert not torch.equal(run.policy.log_std, other.policy.log_std)


def test_the_norm_has_learned_every_observation_once(run):
    assert run.norm.count == run.steps


@pytest.mark.parametrize("env_id", ["HalfCheetah-v5", "Humanoid-v5", "Hopper-v5", "MountainCarContinuous-v0"])
def test_another_robot_needs_another_name_only(robots, settings, env_id):
    run = robots["train"](replace(settings, env_id=env_id), device="cpu")
    assert run.steps == settings.total_steps


def test_the_first_kl_of_a_run_is_zero(robots, settings):
    """Nothing has changed before the first step: the ratios of one whole-batch pass are all 1."""
    whole = replace(settings, epochs=1, minibatch_size=10_000, total_steps=64)
    assert abs(robots["train"](whole, device="cpu").metrics["kl"][0]) < 1e-6


def test_prepare_bootstraps_a_cut_from_the_true_last_observation(robots):
    """T = 2, N = 1, cut at t = 0; V(s) = s, gamma = 1/2, lambda = 1/4: A_0 = 1 + 8/2 - 2 = 3, A_1 = 1 + 6/2 - 4 = 0."""

    class Policy:
        def log_prob(self, obs, actions):
            return actions.sum(-1)

    rollout = robots["Rollout"](
        obs=torch.tensor([[[2.0]], [[4.0]]]), actions=torch.ones(2, 1, 1), rewards=torch.ones(2, 1),
        terminated=torch.zeros(2, 1, dtype=torch.bool), truncated=torch.tensor([[True], [False]]),
        final_obs=torch.tensor([[[8.0]], [[0.0]]]), next_obs=torch.tensor([[6.0]]), episode_returns=[])
    made = robots["prepare"](rollout, Policy(), lambda obs: obs.squeeze(-1), robots["Settings"](gamma=0.5, lam=0.25), "cpu")
    assert made.advantages.tolist() == [3.0, 0.0]
    assert made.returns.tolist() == [5.0, 4.0]
    assert made.obs.shape == (2, 1) and made.log_probs.tolist() == [1.0, 1.0]


def test_an_evaluation_counts_the_first_episode_of_each_robot(robots):
    """Hoppers that do nothing fall soon: the sum over one episode each, the same every time."""
    def still(obs):
        return np.zeros((len(obs), 3))

    returns = robots["evaluate"](still, "Hopper-v5", episodes=3)
    envs = rl_envs.make_envs("Hopper-v5", 3, seed=1_000_000)
    envs.reset()
    first = np.full(3, np.nan)
    while np.isnan(first).any():
        *_, infos = envs.step(np.zeros((3, 3)))
        if "episode" in infos:
            fresh = infos["_episode"] & np.isnan(first)
            first[fresh] = infos["episode"]["r"][fresh]
    np.testing.assert_allclose(returns, first)


def test_an_evaluation_changes_nothing(robots, run):
    before = run.norm.mean.clone()
    act = robots["pilot"](run)
    first = act(np.ones((2, 105)))
    robots["evaluate"](act, "Ant-v5", episodes=2)
    assert torch.equal(run.norm.mean, before)
    np.testing.assert_array_equal(act(np.ones((2, 105))), first)


def test_a_pilot_stays_as_it_is_while_training_goes_on(robots, run):
    run = copy.deepcopy(run)
    act = robots["pilot"](run)
    before = act(np.ones(105))
    with torch.no_grad():
        run.policy.mean[-1].bias.add_(1.0)
    np.testing.assert_array_equal(act(np.ones(105)), before)


def test_a_saved_policy_acts_the_same_and_holds_no_pickle(robots, run, tmp_path):
    path = tmp_path / "ant.safetensors"
    robots["save_policy"](run, path)
    again = robots["load_policy"](path)
    obs = np.random.default_rng(0).normal(size=(6, 105))
    np.testing.assert_array_equal(robots["pilot"](run)(obs), robots["pilot"](again)(obs))
    assert (again.settings.env_id, again.steps, again.norm.frozen) == ("Ant-v5", run.steps, True)
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    assert data[8:9] == b"{" and 8 + header < len(data)  # JSON, then numbers


def test_a_file_of_something_else_is_refused(robots, tmp_path):
    path = tmp_path / "other.safetensors"
    robots["save_file"]({"x": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="was not written by save_policy"):
        robots["load_policy"](path)


def test_a_thousand_ants_say_why_they_are_skipped(robots, capsys):
    if torch.cuda.is_available() and robots["importlib"].util.find_spec("mujoco_warp"):
        pytest.skip("MuJoCo Warp can run here")
    robots["thousand_ants"]()
    assert capsys.readouterr().out.startswith("skipped: MuJoCo Warp")


def test_an_update_on_another_device_gives_the_same_run(robots, run, settings):
    """ "cpu:0" is another name of the same place: the policy that acts is then a copy, as it is beside a GPU."""
    again = robots["train"](settings, device="cpu:0")
    for name, tensor in run.policy.state_dict().items():
        assert torch.equal(tensor, again.policy.state_dict()[name])
