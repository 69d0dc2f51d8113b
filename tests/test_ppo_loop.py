"""The training loop of 03_ppo_details, its flight recorder, its probes and its command line. benchmarks/checks.py plants
many more faults; here is one of each kind, so that a test run stays short."""

import json
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import gymnasium as gym
import pytest
import torch

import rl_tests
from benchmarks.checks_loop import FLIGHT, find
from benchmarks.ppo_faults import FAULTS, broken
from grading import solutions
from rl_checks import engine, probes
from rl_checks.recorder import FlightRecorder, FlightStopped, listening

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "solutions" / "03_ppo_details.ipynb"


@pytest.fixture(scope="module")
def details():
    return solutions.load("03_ppo_details")


def flight(train_ppo, PPOArgs, **changes):
    """Keys of what the recorder finds in a short run."""
    with listening() as findings:
        train_ppo(PPOArgs(**FLIGHT | changes))
    return [finding.key for finding in findings]


def rung(name):
    return next(rung for rung in (*probes.LADDER, *probes.CONTINUOUS) if rung.probe == name)


def test_the_defaults_are_those_of_the_course(details):
    args = details["PPOArgs"]()
    expected = {
        "seed": 1, "env_id": "CartPole-v1", "total_timesteps": 500_000, "learning_rate": 2.5e-4, "num_envs": 4,
        "num_steps": 128, "gamma": 0.99, "gae_lambda": 0.95, "num_minibatches": 4, "update_epochs": 4, "clip_coef": 0.2,
        "ent_coef": 0.01, "vf_coef": 0.5, "max_grad_norm": 0.5, "torch_deterministic": True, "cuda": True, "track": False}
    assert {name: getattr(args, name) for name in expected} == expected
    assert (args.batch_size, args.minibatch_size, args.num_updates) == (512, 128, 976)
    assert all(entry.metadata["help"] for entry in fields(args))


def test_settings_that_do_not_fit_are_refused_with_their_names(details):
    with pytest.raises(ValueError, match="num_minibatches=3"):
        details["PPOArgs"](num_minibatches=3)
    with pytest.raises(ValueError, match="total_timesteps=100"):
        details["PPOArgs"](total_timesteps=100)


def test_the_same_seed_gives_the_same_agent(details):
    args = details["PPOArgs"](**FLIGHT | {"total_timesteps": 1024})
    first, again, other = (details["train_ppo"](a) for a in (args, args, replace(args, seed=2)))
    same = [torch.equal(p, q) for p, q in zip(first.parameters(), again.parameters())]
    assert all(same) and not torch.equal(first.actor[0].weight, other.actor[0].weight)


def test_a_healthy_run_has_no_findings(details):
    for seed in (1, 2):
        assert flight(details["train_ppo"], details["PPOArgs"], seed=seed, total_timesteps=8192) == []
    assert flight(details["train_ppo"], details["PPOArgs"], env_id="MountainCarContinuous-v0", hold=8) == []


def test_the_logs_have_the_names_of_the_course(details, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    details["train_ppo"](details["PPOArgs"](**FLIGHT | {"total_timesteps": 1024, "log_dir": str(tmp_path)}))
    (folder,) = tmp_path.iterdir()
    log = EventAccumulator(str(folder)).Reload()
    wanted = {f"charts/{name}" for name in ("episodic_return", "episodic_length", "learning_rate", "SPS")} | {
        f"losses/{name}" for name in ("value_loss", "policy_loss", "entropy", "old_approx_kl", "approx_kl", "clipfrac",
                                      "explained_variance")}
    assert wanted == set(log.Tags()["scalars"])
    rates = [event.value for event in log.Scalars("charts/learning_rate")]
    assert rates == pytest.approx([1e-3, 5e-4])


def test_what_is_logged_is_right(details):
    """The returns of CartPole's episodes are their lengths, and the KL of an update is small and not negative."""
    rows = []
    details["train_ppo"](details["PPOArgs"](**FLIGHT), after_update=lambda steps, numbers, agent: rows.append(numbers))
    for row in rows:
        assert row["charts/episodic_return"] == pytest.approx(row["charts/episodic_length"])
        assert 0 <= row["losses/approx_kl"] < 0.2 and 0 <= row["losses/clipfrac"] <= 1 and row["losses/entropy"] <= 0.694


@pytest.mark.parametrize("fault, key", [
    ("rollout_phase: stores_the_next_observation", "logprobs"),
    ("rollout_phase: most_likely_action", "sampling"),
    ("rollout_phase: values_of_the_next_observation", "values"),
    ("rollout_phase: resets_at_the_beginning", "continuity"),
    ("learning_phase: gradients_pile_up", "stale"),
    ("learning_phase: gradients_erased", "erased"),
    ("learning_phase: gradient_not_clipped", "norm"),
    ("learning_phase: networks_clipped_apart", "apart"),
    ("learning_phase: scheduler_forgotten", "learning_rate"),
    ("learning_phase: logprobs_computed_anew", "constant"),
    ("learning_phase: one_epoch_only", "steps"),
    ("learning_phase: dealt_once_for_all_epochs", "same_order"),
    ("learning_phase: no_step", "steps"),
    ("learning_phase: policy_loss_left_out", "no_gradient_actor"),
    ("learning_phase: value_loss_left_out", "no_gradient_critic"),
    ("make-envs: autoreset in the next step", "autoreset"),
    ("make-envs: all environments share one seed", "same_seed"),
    ("train-ppo: only the actor in the optimizer", "left_out"),
])
def test_the_recorder_sees_a_planted_fault(fault, key):
    train_ppo = broken(fault)
    changes = {"ent_coef": 0.0} if key == "no_gradient_actor" else {}
    steps = 2560 if key == "same_seed" else 1024
    assert key in flight(train_ppo, probes.settings_of(train_ppo), total_timesteps=steps, **changes)


def test_the_recorder_can_stop_or_be_switched_off(details, capsys):
    train_ppo = broken("learning_phase: gradient_not_clipped")
    PPOArgs = probes.settings_of(train_ppo)
    train_ppo(PPOArgs(**FLIGHT | {"total_timesteps": 1024}))
    said = capsys.readouterr().out
    assert said.count("flight recorder, update 1") == 1 and "Likely cause: clip_grad_norm_" in said
    train_ppo(PPOArgs(**FLIGHT | {"total_timesteps": 1024, "flight_recorder": False}))
    assert capsys.readouterr().out == ""
    space = train_ppo.__globals__
    args = PPOArgs(**FLIGHT)
    agent = space["Agent"](space["make_envs"](args))
    optimizer, _ = space["make_optimizer"](agent, 8, 1e-3, 0.0)
    recorder = FlightRecorder(agent, optimizer, space["make_envs"](args), args, stop=True)
    with pytest.raises(FlightStopped, match="made up"):
        recorder.found("key", "made up", "nothing")


@pytest.mark.parametrize("name", ["ProbeTruncation", "ProbeClip", "ProbeScale"])
def test_a_right_agent_climbs_a_rung(details, name):
    climb = probes.climb(details["train_ppo"], rung(name))
    assert climb.status == engine.PASSED, climb


@pytest.mark.parametrize("fault, name", [
    ("rollout_phase: no_bootstrap_at_a_truncation", "ProbeTruncation"),
    ("learning_phase: nothing_after_the_rollout", "ProbeBoundary"),
    ("learning_phase: entropy_loss_subtracted", "ProbeEntropy"),
    ("learning_phase: ratio_is_always_one", "ProbeClip"),
])
def test_a_probe_sees_what_the_recorder_cannot(fault, name):
    climb = probes.climb(broken(fault), rung(name))
    assert climb.status == engine.FAILED and any(not right for _, right in climb.seen)


def climbs(**failed):
    """A made-up ladder: the named rungs show a wrong number."""
    return [probes.Climb(rung, engine.FAILED if rung.probe in failed else engine.PASSED,
                         (("V = 0, known 1", rung.probe not in failed),)) for rung in probes.LADDER]


def test_the_pattern_of_failures_tells_where_to_look():
    def causes(*names):
        return " ".join(probes.diagnosis(climbs(**dict.fromkeys(names))))
    everything = [rung.probe for rung in probes.LADDER]
    assert causes() == ""
    assert "Nothing is learned at all" in causes(*everything)
    assert "critic is right and the policy learns nothing" in causes("Probe4", "Probe5", "ProbeLambda")
    assert "next_value" in causes("ProbeBoundary") and "clock" not in causes("ProbeBoundary")
    assert "final_obs" in causes("ProbeTruncation")
    assert "different rows" in causes("Probe2", "Probe3", "ProbeMixup")


def test_a_ladder_stops_at_what_is_not_written_or_raises(details):
    def stub(args):
        raise NotImplementedError("rollout_phase is not written yet")

    def crash(args):
        return {}["agent"]
    for train_ppo, status, words in ((stub, engine.NOT_WRITTEN, "not written"), (crash, engine.RAISED, "KeyError")):
        climbed = probes.ladder(train_ppo, PPOArgs=details["PPOArgs"])
        assert [c.status for c in climbed] == [status]
        with pytest.raises(rl_tests.CheckFailed, match=words):
            rl_tests.test_probes(train_ppo, PPOArgs=details["PPOArgs"])


def test_a_fault_is_reported_with_its_cause(monkeypatch):
    monkeypatch.setattr(probes, "LADDER", probes.LADDER[:2])
    with pytest.raises(rl_tests.CheckFailed) as caught:
        rl_tests.test_probes(broken("learning_phase: value_loss_left_out"))
    assert "Probe1: V(0) = " in str(caught.value) and "critic" in str(caught.value)


def test_every_fault_has_a_loop_to_be_planted_in():
    assert len(FAULTS) >= 30
    by, _ = find(broken("make-envs: autoreset in the next step"))
    assert by == "recorder"


def test_the_trainer_runs_from_a_shell_with_help_for_every_flag(details, tmp_path):
    def shell(*flags):
        return subprocess.run([sys.executable, "-m", "rl_checks.shell", str(NOTEBOOK), *flags], cwd=ROOT, check=False,
                              capture_output=True, text=True)
    shown = shell("--help")
    assert shown.returncode == 0, shown.stderr
    for entry in fields(details["PPOArgs"]):
        assert "--" + entry.name.replace("_", "-") in shown.stdout
    ran = shell("--env-id", "Probe4-v0", "--total-timesteps", "1024", "--log-dir", str(tmp_path), "--no-torch-deterministic")
    assert ran.returncode == 0 and "without dice" in ran.stdout and list(tmp_path.iterdir()), ran.stderr
    assert shell("--env-id").returncode == 2


def test_live_cells_are_cut_short_for_a_rehearsal():
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        source = "".join(cell["source"])
        if "live" in cell["metadata"].get("tags", []) and "train_ppo(" in source:
            assert "SHORT" in source or "rehearsed(" in source, cell["id"]


def test_an_agent_for_continuous_actions_is_made_where_they_are_asked_for(details):
    envs = details["make_envs"](details["PPOArgs"](env_id="MountainCarContinuous-v0", num_envs=2))
    assert isinstance(details["make_agent"](envs), details["ContinuousAgent"])
    assert isinstance(envs.single_action_space, gym.spaces.Box)
