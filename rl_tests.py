"""Checks of your work: each test_* function looks at what you wrote and tells what is right, what is wrong and where.

    rl_tests.test_compute_advantages(compute_advantages)

shows a report, returns it, and raises CheckFailed unless everything passes. The cases and the expected numbers are in
reference.json, which the authors generate; `python -m grading` asks other questions of the same kind.

For checks that an instructor writes in a cell: run_tests and check_torch_tensor.
"""

import functools
import importlib
import json
import time
from dataclasses import replace
from pathlib import Path

from rl_checks import engine
from rl_checks.engine import Case
from rl_checks.protocol import check_torch_tensor, run_tests
from rl_checks.report import CheckFailed, Report, merged, rows_of
from rl_checks.values import decode

__all__ = ["CheckFailed", "Report", "check_torch_tensor", "run_tests"]

REFERENCE = Path(__file__).resolve().parent / "reference.json"


def test_discounted_returns(discounted_returns):
    """01: the discounted return of every episode."""
    return _check("01_policy_gradients", ["discounted_returns"], discounted_returns, "discounted_returns")


def test_reward_to_go(reward_to_go):
    """01: discounted rewards from each step on."""
    return _check("01_policy_gradients", ["reward_to_go"], reward_to_go, "reward_to_go")


def test_policy_gradient_loss(policy_gradient_loss):
    """01: the REINFORCE loss, with and without a baseline."""
    return _check("01_policy_gradients", ["policy_gradient_loss"], policy_gradient_loss, "policy_gradient_loss")


def test_kl_categorical(kl_categorical):
    """01: the KL divergence of two categorical policies."""
    return _check("01_policy_gradients", ["kl_categorical"], kl_categorical, "kl_categorical")


def test_clipped_objective(clipped_objective):
    """01: PPO's clipped objective, per sample."""
    return _check("01_policy_gradients", ["clipped_objective"], clipped_objective, "clipped_objective")


def test_td_errors(td_errors):
    """01: one-step TD errors."""
    return _check("01_policy_gradients", ["td_errors"], td_errors, "td_errors")


def test_ppo(PPO, only=None):
    """02: the class PPO. only: "compute_advantages" or "compute_loss" for that piece alone."""
    pieces = ("networks", "compute_advantages", "compute_loss")
    if only is not None and only not in pieces:
        raise ValueError(f"only={only!r}: test_ppo knows {', '.join(pieces)}")
    return _check("02_lunar_lander", [only] if only else pieces, PPO, f"PPO.{only}" if only else "PPO")


def test_agent_init(Agent):
    """03: the class Agent."""
    return _check("03_ppo_details", ["agent_init"], Agent, "Agent")


def test_compute_advantages(compute_advantages):
    """03: advantages by GAE."""
    return _check("03_ppo_details", ["compute_advantages"], compute_advantages, "compute_advantages")


def test_minibatch_indexes(minibatch_indexes):
    """03: how a batch is dealt into minibatches."""
    return _check("03_ppo_details", ["minibatch_indexes"], minibatch_indexes, "minibatch_indexes")


def test_make_minibatches(make_minibatches):
    """03: minibatches with all their fields."""
    return _check("03_ppo_details", ["make_minibatches"], make_minibatches, "make_minibatches")


def test_calc_policy_loss(calc_policy_loss):
    """03: the clipped policy loss, value and gradient."""
    return _check("03_ppo_details", ["calc_policy_loss"], calc_policy_loss, "calc_policy_loss")


def test_calc_value_function_loss(calc_value_function_loss):
    """03: the critic's loss, value and gradient."""
    return _check("03_ppo_details", ["calc_value_function_loss"], calc_value_function_loss, "calc_value_function_loss")


def test_calc_entropy_loss(calc_entropy_loss):
    """03: the entropy bonus, value and gradient."""
    return _check("03_ppo_details", ["calc_entropy_loss"], calc_entropy_loss, "calc_entropy_loss")


def test_ppo_scheduler(PPOScheduler):
    """03: the class PPOScheduler."""
    return _check("03_ppo_details", ["ppo_scheduler"], PPOScheduler, "PPOScheduler")


def test_make_optimizer(make_optimizer):
    """03: Adam and its scheduler."""
    return _check("03_ppo_details", ["make_optimizer"], make_optimizer, "make_optimizer")


def test_calc_old_approx_kl(calc_old_approx_kl):
    """03: the plain estimate of the KL."""
    return _check("03_ppo_details", ["calc_old_approx_kl"], calc_old_approx_kl, "calc_old_approx_kl")


def test_calc_approx_kl(calc_approx_kl):
    """03: the better estimate of the KL."""
    return _check("03_ppo_details", ["calc_approx_kl"], calc_approx_kl, "calc_approx_kl")


def test_calc_clipfrac(calc_clipfrac):
    """03: the clipped share."""
    return _check("03_ppo_details", ["calc_clipfrac"], calc_clipfrac, "calc_clipfrac")


def test_calc_explained_variance(calc_explained_variance):
    """03: what the critic explains."""
    return _check("03_ppo_details", ["calc_explained_variance"], calc_explained_variance, "calc_explained_variance")


def test_calc_entropy(calc_entropy):
    """03: the policy's mean entropy."""
    return _check("03_ppo_details", ["calc_entropy"], calc_entropy, "calc_entropy")


def test_rollout_phase(rollout_phase):
    """03: collecting a rollout, in scripted environments."""
    return _check("03_ppo_details", ["rollout_phase"], rollout_phase, "rollout_phase")


def test_learning_phase(learning_phase):
    """03: learning from a rollout, with stand-ins for the losses."""
    return _check("03_ppo_details", ["learning_phase"], learning_phase, "learning_phase")


def test_continuous_agent_init(ContinuousAgent):
    """03: bonus, the class ContinuousAgent."""
    return _check("03_ppo_details", ["continuous_agent_init"], ContinuousAgent, "ContinuousAgent")


def test_compute_advantages_without_loop(compute_advantages_without_loop):
    """03: bonus, GAE without a loop over t."""
    piece = "compute_advantages_without_loop"
    return _check("03_ppo_details", [piece], compute_advantages_without_loop, piece)


def test_probes(train_ppo, continuous=False, seed=1, PPOArgs=None):
    """03: trains on environments with known answers, from easy to hard, and tells from what fails where to look.

    train_ppo    PPOArgs -> agent
    continuous   also the probe of continuous actions
    PPOArgs      the class of the settings, where it is not a name of the notebook that train_ppo was written in
    """
    from rl_checks import probes

    report = probes.report(probes.ladder(train_ppo, continuous, seed, PPOArgs))
    report.show()
    if not report.passed:
        raise CheckFailed(report)
    return report


def flight_recorder(agent, optimizer, envs, args, stop=False):
    """03: a FlightRecorder, which watches a training loop for broken invariants (rl_checks/recorder.py)."""
    from rl_checks.recorder import FlightRecorder

    return FlightRecorder(agent, optimizer, envs, args, stop)


def test_gaussian_policy(GaussianPolicy):
    """04: the class GaussianPolicy."""
    return _check("04_continuous_control", ["GaussianPolicy"], GaussianPolicy, "GaussianPolicy")


def test_running_norm(RunningNorm):
    """04: running statistics of observations."""
    return _check("04_continuous_control", ["RunningNorm"], RunningNorm, "RunningNorm")


def test_reward_scaler(RewardScaler):
    """04: rewards of one size."""
    return _check("04_continuous_control", ["RewardScaler"], RewardScaler, "RewardScaler")


def test_bootstrap_truncations(bootstrap_truncations):
    """04: values of next states, across the clock's cuts."""
    return _check("04_continuous_control", ["bootstrap_truncations"], bootstrap_truncations, "bootstrap_truncations")


def test_gae(gae):
    """04: advantages, with terminated and truncated apart."""
    return _check("04_continuous_control", ["gae"], gae, "gae")


def test_ppo_update(ppo_update):
    """04: all epochs of one update, with stand-ins for the networks."""
    return _check("04_continuous_control", ["ppo_update"], ppo_update, "ppo_update")


def test_collect(collect):
    """04: collecting a rollout, in scripted environments."""
    return _check("04_continuous_control", ["collect"], collect, "collect")


def _check(assignment, pieces, target, title):
    """Checks `target` as each of the pieces, shows the report and returns it, or raises CheckFailed."""
    observers = observers_of(assignment)
    rows, started = [], time.perf_counter()
    for name in pieces:
        cases, hints = visible_cases(assignment, name)
        findings, names, _ = engine.check(observers[name], target, cases)
        told = rows_of(findings, names, hints)
        rows += told if len(pieces) == 1 else [replace(row, title=f"{name}: {row.title}") for row in told]
    report = Report(title, merged(rows), time.perf_counter() - started)
    report.show()
    if not report.passed:
        raise CheckFailed(report)
    return report


def observers_of(assignment):
    """{piece name: Piece} of an assignment: 02_lunar_lander -> rl_checks.lunar_lander.PIECES."""
    return importlib.import_module("rl_checks." + assignment.partition("_")[2]).PIECES


def visible_cases(assignment, piece):
    """(list of Case, {mistake: hints from nudge to strongest}) out of reference.json."""
    entry = _reference().get(assignment, {}).get(piece)
    if entry is None:
        raise LookupError(f"reference.json has no cases for {assignment}/{piece}: take it again from the course's files")
    cases = []
    for case in entry["cases"]:
        mistakes = {key: _record(given) for key, given in case["mistakes"].items()}
        cases.append(Case(case["name"], _record(case["inputs"]), _record(case["expected"]), mistakes))
    return cases, entry["hints"]


def _record(quantities):
    return {name: decode(value) for name, value in quantities.items()}


@functools.cache
def _reference():
    try:
        return json.loads(REFERENCE.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{REFERENCE.name} must lie beside rl_tests.py: take it again from the course's files, "
                                f"or run `python -m grading build`") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{REFERENCE.name} is damaged ({error}): take it again from the course's files") from None
