"""The ladder of probes: trains on tiny environments and compares with what a right agent knows.

Every threshold is the known answer plus or minus a tolerance, and the tolerances lie at least 8 standard deviations (over
seeds, of the reference solution) away from where a right agent ends: see FALSE_ALARM and docs/checks.md.
"""

import inspect
import time
from dataclasses import dataclass, fields, is_dataclass

import torch

from rl_checks import engine
from rl_checks.engine import FAILED, NOT_WRITTEN, PASSED, RAISED
from rl_checks.recorder import listening
from rl_checks.report import Hint, Paragraph, Report, Row

# A right agent fails a whole ladder by chance less often than this: 0 of 40 seeds did, and a normal distribution with
# the measured spread puts each of some 25 thresholds below 1e-9. The bound leaves room for tails that are not normal.
FALSE_ALARM = 1e-3


@dataclass(frozen=True)
class Rung:
    """One probe: how it is trained, how near the answers must be, and what to suspect if they are not.

    settings   fields of PPOArgs; everything else has its default
    value      largest |V - known V|
    prob       largest |pi - known pi| of an action's probability
    mean       largest distance of a continuous action's mean
    expects    keys of the flight recorder's findings that are no news here
    """

    probe: str
    settings: dict
    suspects: str
    value: float = 0.0
    prob: float = 0.0
    mean: float = 0.0
    expects: tuple = ()


SMALL = {"num_envs": 16, "num_steps": 8, "num_minibatches": 2, "learning_rate": 2e-3}
LADDER = (
    Rung("Probe1", {"total_timesteps": 10_240, "learning_rate": 1e-3},
         "The critic does not learn a constant: calc_value_function_loss, the optimizer, or the value loss in learning_phase.",
         value=0.1),
    Rung("Probe2", {"total_timesteps": 10_240, "learning_rate": 1e-3},
         "The critic learns the mean, not the observation: observations and returns come from different rows "
         "(make_minibatches), or [M, 1] - [M] in calc_value_function_loss.", value=0.1),
    Rung("Probe3", {"total_timesteps": 10_240, "learning_rate": 1e-3},
         "A reward one step later is not handed back: compute_advantages (discount, bootstrap), or dones in rollout_phase.",
         value=0.1),
    Rung("Probe4", {"total_timesteps": 30_720},
         "The policy does not find the better action: sign of calc_policy_loss, its gradient, or the policy loss in "
         "learning_phase.", value=0.2, prob=0.1),
    Rung("Probe5", {"total_timesteps": 30_720},
         "Actions are not paired with the observations they were taken in: rollout_phase or make_minibatches.",
         value=0.2, prob=0.1),
    Rung("ProbeBoundary", {"num_envs": 32, "num_steps": 2, "num_minibatches": 2, "gamma": 0.5, "learning_rate": 2e-3,
                           "total_timesteps": 9_600},
         "The last step of a rollout is treated as an end, or bootstrapped from another observation: next_value in "
         "learning_phase or compute_advantages, or next_done.", value=0.1),
    Rung("ProbeTruncation", {**SMALL, "gamma": 0.5, "total_timesteps": 15_360},
         "A clock is treated as the end of the task: rollout_phase adds gamma * V(final_obs) at a truncation, and the flag "
         "is terminated OR truncated.", value=0.1),
    Rung("ProbeTermination", {**SMALL, "gamma": 0.75, "total_timesteps": 19_200},
         "Something is bootstrapped after a termination, or the sum runs into the next episode: dones in rollout_phase, "
         "compute_advantages.", value=0.15),
    Rung("ProbeFiller", {**SMALL, "gamma": 0.5, "total_timesteps": 10_240},
         "Rows between episodes are trained on: the environments are not in SAME_STEP mode (make_envs).", value=0.1),
    Rung("ProbeLambda", {"num_envs": 16, "num_steps": 15, "num_minibatches": 2, "learning_rate": 1e-3, "ent_coef": 0.0,
                         "total_timesteps": 19_200},
         "News does not travel back over several steps: gae_lambda in compute_advantages.", prob=0.1),
    Rung("ProbeClip", {"num_envs": 32, "num_steps": 16, "update_epochs": 40, "learning_rate": 1e-3, "total_timesteps": 512},
         "One update moves the policy as far as it likes, or not at all: the clip in calc_policy_loss, or old "
         "log-probabilities that are computed anew.", prob=0.15, expects=("clipfrac", "kl")),
    Rung("ProbeEntropy", {"num_envs": 16, "num_steps": 32, "learning_rate": 1e-3, "ent_coef": 2.0,
                          "total_timesteps": 30_720},
         "The pull of the entropy bonus is wrong: sign or size of calc_entropy_loss, how learning_phase adds it, or "
         "advantages that are not normalised.", prob=0.1),
    Rung("ProbeMixup", {"num_envs": 8, "num_steps": 15, "num_minibatches": 2, "gamma": 0.75, "learning_rate": 2e-3,
                        "total_timesteps": 18_000},
         "Rows of different environments are mixed up: a reshape where a transpose was meant, or advantages computed over "
         "environments.", value=0.2),
)
CONTINUOUS = (
    Rung("ProbeScale", {"num_envs": 16, "num_steps": 32, "learning_rate": 3e-3, "ent_coef": 0.0, "total_timesteps": 30_720},
         "The mean of a continuous policy is off: log-probabilities not summed over the action's dimensions, clipped "
         "actions stored, or a log_std that is not trained.", mean=0.2),
)


@dataclass(frozen=True)
class Climb:
    """How one rung went: what was wrong, each with its number, and what the flight recorder found."""

    rung: Rung
    status: str
    seen: tuple = ()  # (sentence, right or wrong)
    findings: tuple = ()
    error: str = ""
    place: str = ""
    seconds: float = 0.0


def climb(train_ppo, rung, seed=1, settings=None):
    """Trains on one probe and looks at what the agent knows."""
    import probe_envs

    started = time.perf_counter()
    PPOArgs = settings or settings_of(train_ppo)
    wanted = {"env_id": f"{rung.probe}-v0", "seed": seed, "log_dir": "", "cuda": False, **rung.settings}
    known = {field.name for field in fields(PPOArgs)} if is_dataclass(PPOArgs) else wanted
    with listening() as findings:
        outcome, trouble = engine.attempt(lambda: _train(train_ppo, PPOArgs, wanted, known, rung, probe_envs))
    if trouble:
        status = NOT_WRITTEN if trouble.status == NOT_WRITTEN else RAISED
        return Climb(rung, status, error=trouble.error, place=trouble.place, seconds=time.perf_counter() - started)
    news = tuple(finding for finding in findings if finding.key not in rung.expects)
    right = all(ok for _, ok in outcome) and not news
    return Climb(rung, PASSED if right else FAILED, tuple(outcome), news, seconds=time.perf_counter() - started)


def settings_of(train_ppo):
    """The class PPOArgs that belongs to train_ppo: its annotation, or the notebook's name."""
    for parameter in inspect.signature(train_ppo).parameters.values():
        if is_dataclass(parameter.annotation):
            return parameter.annotation
        break
    found = getattr(inspect.unwrap(train_ppo), "__globals__", {}).get("PPOArgs")
    if found is None:
        raise ValueError("test_probes needs the class of the settings: test_probes(train_ppo, PPOArgs=PPOArgs)")
    return found


def _train(train_ppo, PPOArgs, wanted, known, rung, probe_envs):
    with torch.random.fork_rng(devices=[]):
        agent = train_ppo(PPOArgs(**{name: value for name, value in wanted.items() if name in known}))
    if agent is None:
        raise ValueError("train_ppo returned None; it must return the trained agent")
    gamma = rung.settings.get("gamma", 0.99)
    return [row for answer in probe_envs.PROBES[rung.probe].answers for row in _compare(agent, answer, rung, gamma)]


def _compare(agent, answer, rung, gamma):
    """(sentence, right or wrong) for everything that the probe says about one observation."""
    obs = torch.tensor([answer.obs], dtype=torch.float32)
    at = "(" + ", ".join(f"{x:.3g}" for x in answer.obs) + ")"
    with torch.no_grad():
        outputs = agent.actor(obs).flatten()
        if rung.value and answer.value is not None:
            value, known = float(agent.critic(obs)), answer.value_at(gamma)
            yield f"V{at} = {value:.3f}, known {known:.3f} ± {rung.value:g}", abs(value - known) <= rung.value
        if rung.prob and answer.probs is not None:
            prob, known = float(outputs.softmax(0)[-1]), answer.probs[-1]
            yield (f"pi(action {len(outputs) - 1} | {at[1:-1]}) = {prob:.3f}, known {known:.3g} ± {rung.prob:g}",
                   abs(prob - known) <= rung.prob)
        if rung.mean and answer.mean is not None:
            distance = float((outputs - torch.tensor(answer.mean)).abs().max())
            means, known = (", ".join(f"{x:.2f}" for x in numbers) for numbers in (outputs.tolist(), answer.mean))
            yield f"mean{at} = ({means}), known ({known}) ± {rung.mean:g}", distance <= rung.mean


def ladder(train_ppo, continuous=False, seed=1, PPOArgs=None):
    """Climbs every rung; stops at the first that raises or is not written, since the others would do the same."""
    climbs = []
    for rung in LADDER + (CONTINUOUS if continuous else ()):
        climbs.append(climb(train_ppo, rung, seed, PPOArgs))
        if climbs[-1].status in (RAISED, NOT_WRITTEN):
            break
    return climbs


def diagnosis(climbs):
    """What to look at first, from the pattern of failures: a list of sentences, [] if all is well."""
    failed = [c.rung.probe for c in climbs if c.status == FAILED]
    wrong = [c for c in climbs if c.status == FAILED and not all(ok for _, ok in c.seen)]
    if not failed:
        return []
    causes = []
    for finding in {f.key: f for c in climbs for f in c.findings}.values():
        causes.append(f"The flight recorder saw: {finding.seen}. Likely cause: {finding.cause}")
    names = {c.rung.probe for c in wrong}
    policy, values = {"Probe4", "Probe5", "ProbeLambda"}, {"Probe1", "Probe2", "Probe3"}
    if values <= names and policy <= names:
        causes.append("Nothing is learned at all: the optimizer (make_optimizer), the learning rate (PPOScheduler), or "
                      "learning_phase.")
    elif policy <= names and not names & values:
        causes.append("The critic is right and the policy learns nothing: calc_policy_loss, its sign and its gradient.")
    elif wrong:
        # The ladder is ordered: a rung needs what the rungs below it need.
        causes.append(wrong[0].rung.suspects)
        causes += [c.rung.suspects for c in wrong[1:] if not names & values and c.rung.probe.startswith("Probe")
                   and not c.rung.probe[-1].isdigit()][:2]
    return causes


def report(climbs):
    """The Report of a ladder."""
    causes = diagnosis(climbs)
    rows = []
    for c in climbs:
        numbers = "; ".join(sentence for sentence, ok in c.seen if c.status == PASSED or not ok)
        if c.status == NOT_WRITTEN:
            rows.append(Row(NOT_WRITTEN, c.rung.probe, c.error or "not written yet"))
        elif c.status == RAISED:
            rows.append(Row(RAISED, c.rung.probe, f"your code raised {c.error}",
                            (Paragraph(f"in {c.place}", code=True),) if c.place else ()))
        else:
            numbers = numbers or "the numbers are right, but the flight recorder is not content"
            blocks = tuple(Hint((cause,), "from the pattern of all probes") for cause in causes) if c.status == FAILED else ()
            causes = [] if blocks else causes
            rows.append(Row(c.status, c.rung.probe, numbers, blocks))
    return Report("probes", rows, sum(c.seconds for c in climbs))
