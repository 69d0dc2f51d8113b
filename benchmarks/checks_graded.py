"""Submissions of 03_ppo_details through the grader: all marks, none, and one piece lost for one mistake in it."""

import copy
import tempfile
from pathlib import Path

import nbformat

from grading import batch, bubblewrap, notebooks

NAME = "03_ppo_details"
HIDDEN = "layer_init(nn.Linear(64, 64)), nn.Tanh(),"
LAST = "layer_init(nn.Linear(64, num_actions), row_norm=0.01)"
# piece -> edits of its solution cell, as a student would have written it: (old, new)
EDITS = {
    "agent_init": [(LAST, "layer_init(nn.Linear(64, num_actions))"), (HIDDEN, HIDDEN.replace("Tanh", "ReLU")),
                   (LAST, LAST + ", nn.Softmax(dim=-1)"),
                   ("obs_size = int(np.prod(envs.single_observation_space.shape))", "obs_size = 4")],
    "compute_advantages": [("next_value.reshape(1, -1)", "torch.zeros_like(next_value)"),
                           ("gae_lambda * goes_on[t] *", "gae_lambda *"),
                           ("gamma * next_values * goes_on", "gamma * next_values"), ("gamma * gae_lambda", "gamma"),
                           ("torch.cat([dones[1:], next_done.reshape(1, -1)]).float()", "dones")],
    "minibatch_indexes": [("torch.randperm(batch_size)", "torch.arange(batch_size)"),
                          ("torch.randperm(batch_size)", "torch.randint(batch_size, (batch_size,))")],
    "make_minibatches": [("advantages + values", "advantages"), ("obs.reshape(", "obs.transpose(0, 1).reshape("),
                         ("minibatch_indexes(batch_size, minibatch_size)]", "torch.arange(batch_size).split(minibatch_size)]")],
    "calc_policy_loss": [("-torch.min", "torch.min"), ("torch.min(", "torch.max("), (" - mb_advantages.mean())", ")"),
                         ("(probs.log_prob(mb_action) - mb_logprobs).exp()", "probs.log_prob(mb_action) - mb_logprobs"),
                         ("1 - clip_coef, 1 + clip_coef", "0.8, 1.2")],
    "calc_value_function_loss": [("0.5 * ", ""), (".squeeze(-1)", ""), ("critic(mb_obs)", "critic(mb_obs).detach()")],
    "calc_entropy_loss": [("-ent_coef", "ent_coef"), (".mean()", ".sum()")],
    "ppo_scheduler": [("self.optimizer.param_groups", "self.optimizer.param_groups[:1]"),
                      ("min(self.calls + 1, self.num_updates)", "self.calls + 1"),
                      ("self.initial_lr + done", 'group["lr"] + done')],
    "make_optimizer": [(", eps=1e-5", ""), ("agent.parameters()", "agent.actor.parameters()")],
    "calc_old_approx_kl": [("old_logprobs - new_logprobs", "new_logprobs - old_logprobs")],
    "calc_approx_kl": [(" - 1 -", " -"), ("new_logprobs - old_logprobs", "old_logprobs - new_logprobs")],
    "calc_clipfrac": [(".abs()", ""), ("> clip_coef", "> 0.2")],
    "calc_explained_variance": [("1 - (", "("),
                                ("(returns - values).var(unbiased=False)", "(returns - values).square().mean()")],
    "calc_entropy": [(".mean()", ".sum()")],
    "rollout_phase": [("truncated & ~terminated", "truncated & False"), ("args.gamma * agent", "agent"),
                      ("steps.append((next_obs,", "steps.append((torch.as_tensor(obs),"),
                      ("terminated | truncated,", "terminated,"),
                      ("probs.sample()", "probs.logits.argmax(-1)")],
    "learning_phase": [("optimizer.zero_grad()", "pass"),
                       ("nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)", "pass"),
                       ("    scheduler.step()", "    pass"), ("args.update_epochs", "1"),
                       ("value_loss + calc_entropy_loss", "value_loss - calc_entropy_loss")],
    "continuous_agent_init": [("nn.Parameter(torch.zeros(action_size))", "torch.zeros(action_size)")],
    "compute_advantages_without_loop": [("gamma * gae_lambda", "gamma"),
                                        ("dones.cumsum(dim=0)", "torch.zeros_like(dones)")],
}


def graded(options):
    """Grades a class: the solution, the release, and one submission for every edit."""
    solution = notebooks.read(notebooks.solution_path(NAME))
    points = notebooks.points(solution)
    students = {"solution": (solution, set()), "release": (notebooks.read(notebooks.RELEASES / f"{NAME}.ipynb"), set(points))}
    for piece, edits in EDITS.items():
        for i, (old, new) in enumerate(edits):
            students[f"{piece}-{i}"] = (_edited(solution, piece, old, new), {piece})
    unsafe = bool(bubblewrap.missing())
    with tempfile.TemporaryDirectory() as folder:
        for name, (notebook, _) in students.items():
            path = Path(folder) / "submitted" / name / f"{NAME}.ipynb"
            path.parent.mkdir(parents=True)
            nbformat.write(notebook, path)
        verdicts = batch.grade(Path(folder) / "submitted", NAME, Path(folder) / "out", workers=1, unsafe=unsafe)
    wrong = []
    for verdict in verdicts:
        lost = {piece for piece, judged in verdict.pieces.items() if judged.score < judged.points}
        if verdict.status != "ok" or lost != students[verdict.student][1]:
            wrong.append({"student": verdict.student, "status": verdict.status, "lost": sorted(lost)})
    scores = {verdict.student: verdict.score for verdict in verdicts}
    return {"submissions": len(verdicts), "max_score": sum(points.values()), "solution": scores["solution"],
            "release": scores["release"], "not_as_expected": wrong, "sandbox": not unsafe}


def _edited(solution, piece, old, new):
    notebook = copy.deepcopy(solution)
    cell = next(cell for cell in notebook.cells if notebooks.is_answer(cell) and notebooks.grade_id(cell) == piece)
    if old not in cell.source:
        raise ValueError(f"the solution of {piece} has no {old!r}")
    cell.source = cell.source.replace(old, new)
    return notebook
