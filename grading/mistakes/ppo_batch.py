"""Known mistakes of 03_ppo_details in the minibatches. T steps, N envs, B = T * N rows."""

from types import SimpleNamespace

import torch

from grading.mistakes import Book

MISTAKES = Book()
FIELDS = ("obs", "logprobs", "actions", "advantages", "returns", "values")


def _deal(nudge, pointer, answer):
    return MISTAKES.add("minibatch_indexes", nudge=nudge, pointer=pointer, answer=answer)


PERMUTATION = "torch.randperm(batch_size), cut into pieces of minibatch_size."


@_deal("Are neighbouring rows of a rollout independent of each other?", "The rows are never shuffled.", PERMUTATION)
def never_shuffled(batch_size, minibatch_size):
    return list(torch.arange(batch_size).split(minibatch_size))


@_deal("Call it twice. What differs?",
       "Every call deals the same order: a fixed pattern, or a generator that is seeded anew each time.",
       "Do not seed inside; " + PERMUTATION)
def seeded_inside(batch_size, minibatch_size):
    order = torch.randperm(batch_size, generator=torch.Generator().manual_seed(0))
    return list(order.split(minibatch_size))


@_deal("How often is each row drawn?", "Rows are drawn with replacement: some come twice, others never.", PERMUTATION)
def with_replacement(batch_size, minibatch_size):
    return list(torch.randint(batch_size, (batch_size,)).split(minibatch_size))


@_deal("Count the rows that you deal.", "The last minibatch is missing.", "range(0, batch_size, minibatch_size)")
def last_minibatch_missing(batch_size, minibatch_size):
    return list(torch.randperm(batch_size).split(minibatch_size))[:-1]


@_deal("Does every row get a turn?", "Only one minibatch is returned; an epoch deals the whole batch.", PERMUTATION)
def one_minibatch_only(batch_size, minibatch_size):
    return [torch.randperm(batch_size)[:minibatch_size]]


@_deal("Which rows share a minibatch, in every call?",
       "Whole blocks of neighbouring rows are dealt: the same rows share a minibatch every time.", PERMUTATION)
def blocks_shuffled(batch_size, minibatch_size):
    blocks = torch.arange(batch_size).split(minibatch_size)
    return [blocks[i] for i in torch.randperm(len(blocks))]


@_deal("What does the second argument count: rows, or minibatches?",
       "minibatch_size is taken for the number of minibatches.", "Pieces of minibatch_size rows.")
def size_taken_for_number(batch_size, minibatch_size):
    return list(torch.randperm(batch_size).tensor_split(minibatch_size))


@_deal("Which is the first index of a batch, which the last?",
       "Your indexes run from 1 to batch_size; they run from 0.",
       "torch.randperm(batch_size)")
def counts_from_one(batch_size, minibatch_size):
    return list((torch.randperm(batch_size) + 1).split(minibatch_size))


@_deal("Do your pieces overlap?", "The pieces overlap: each starts too early.", "range(0, batch_size, minibatch_size)")
def overlapping(batch_size, minibatch_size):
    order = torch.randperm(batch_size)
    return [order[max(0, i - 1):i - 1 + minibatch_size] for i in range(0, batch_size, minibatch_size)]


@_deal("What is left over when 10 rows are dealt in fours?",
       "Where minibatch_size does not divide batch_size, the rest of the rows is dropped without a word.",
       "Deal the rest as a smaller minibatch, or refuse such a batch.")
def rest_dropped(batch_size, minibatch_size):
    whole = batch_size // minibatch_size * minibatch_size
    return list(torch.randperm(batch_size)[:whole].split(minibatch_size))


# make_minibatches -----------------------------------------------------------------------------------------------------

def minibatch_indexes(batch_size, minibatch_size):
    """The right one; the observer replaces it by prepared orders."""
    return list(torch.randperm(batch_size).split(minibatch_size))


def batch(name, nudge, pointer, answer, columns=None, deal=None, choose=None):
    """Registers a wrong make_minibatches.

    columns   (flat columns, rollout) changes them
    deal      (B, M) -> index arrays
    choose    (column's name, rows) -> the rows of that column
    """
    def wrong(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size, minibatch_size):
        given = {"obs": obs, "logprobs": logprobs, "actions": actions, "advantages": advantages, "values": values}
        flat = {"obs": obs.reshape(batch_size, *obs_shape), "actions": actions.reshape(batch_size, *action_shape)}
        flat |= {name: given[name].reshape(-1) for name in ("logprobs", "advantages", "values")}
        flat["returns"] = flat["advantages"] + flat["values"]
        if columns:
            columns(flat, given)
        dealt = deal(batch_size, minibatch_size) if deal else minibatch_indexes(batch_size, minibatch_size)
        return [SimpleNamespace(**{field: flat[field][choose(field, rows) if choose else rows] for field in FIELDS})
                for rows in dealt]
    wrong.__name__ = name
    MISTAKES.add("make_minibatches", nudge=nudge, pointer=pointer, answer=answer)(wrong)


def setting(field, value):
    """Changes one column: value(flat columns, rollout)."""
    return lambda flat, given: flat.update({field: value(flat, given)})


RETURNS = "returns = advantages + values, before dealing."

batch("returns_are_advantages", "What should the critic have said?",
      "returns holds the plain advantages; the values are missing.",
      RETURNS, setting("returns", lambda flat, given: flat["advantages"]))
batch("returns_are_values", "What should the critic have said?",
      "returns holds the old values; nothing could be learned from them.",
      RETURNS, setting("returns", lambda flat, given: flat["values"]))
batch("returns_subtract_values", "A = target - V. What is the target?", "returns is advantages minus values.", RETURNS,
      setting("returns", lambda flat, given: flat["advantages"] - flat["values"]))
batch("returns_from_normalised_advantages", "In which units does the critic think?",
      "returns is made of normalised advantages; the critic must predict true returns.", RETURNS,
      setting("returns", lambda flat, given: _normalised(flat["advantages"]) + flat["values"]))
batch("advantages_normalised_here", "Who normalises the advantages, and over which rows?",
      "You normalise the advantages over the batch; calc_policy_loss does it for each minibatch.",
      "Hand the advantages on as they are.", setting("advantages", lambda flat, given: _normalised(flat["advantages"])))
batch("values_and_returns_swapped", "Which field holds what the critic SAID?", "values and returns are swapped.",
      "Minibatch(obs, logprobs, actions, advantages, returns, values), in this order.",
      lambda flat, given: flat.update(values=flat["returns"], returns=flat["values"]))
batch("advantages_and_logprobs_swapped", "In which order does Minibatch take its fields?",
      "advantages and logprobs are swapped.",
      "Minibatch(obs, logprobs, actions, advantages, returns, values), in this order.",
      lambda flat, given: flat.update(advantages=flat["logprobs"], logprobs=flat["advantages"]))
batch("observations_transposed", "Row 1 of the flat batch: which step, which environment, in each field?",
      "Observations are flattened environment by environment, the other fields step by step: rows belong to different moments.",
      "reshape(batch_size, ...) for every field, without a transpose.",
      setting("obs", lambda flat, given: given["obs"].transpose(0, 1).reshape(flat["obs"].shape)))
batch("actions_transposed", "Row 1 of the flat batch: which step, which environment, in each field?",
      "Actions are flattened environment by environment, the other fields step by step.",
      "reshape(batch_size, ...) for every field, without a transpose.",
      setting("actions", lambda flat, given: given["actions"].transpose(0, 1).reshape(flat["actions"].shape)))
batch("advantages_transposed", "Row 1 of the flat batch: which step, which environment, in each field?",
      "Advantages are flattened environment by environment, the other fields step by step.",
      "reshape(batch_size, ...) for every field, without a transpose.",
      setting("advantages", lambda flat, given: given["advantages"].T.reshape(-1)))
batch("observations_flattened", "Which shape has one observation?",
      "The shape of an observation is lost: it is flattened to one dimension.",
      "obs.reshape(batch_size, *obs_shape)", setting("obs", lambda flat, given: flat["obs"].reshape(len(flat["obs"]),
      -1)))
batch("columns_kept_two_dimensional", "Which shape has the column of M numbers?",
      "advantages has shape [M, 1]; it is [M].",
      "advantages.reshape(batch_size)", setting("advantages", lambda flat, given: flat["advantages"][:, None]))
batch("actions_lose_their_shape", "Can an action have more than one number?", "The shape of an action is lost.",
      "actions.reshape(batch_size, *action_shape)",
      setting("actions", lambda flat, given: flat["actions"].reshape(len(flat["obs"]), -1)[:, 0]))
batch("never_shuffled_at_all", "Are neighbouring rows of a rollout independent of each other?",
      "The rows come in the order of the rollout.", "Use minibatch_indexes.",
      deal=lambda B, M: list(torch.arange(B).split(M)))
batch("the_same_order_each_time", "Call it twice. What differs?", "Every call deals the same order.",
      "Use minibatch_indexes.",
      deal=lambda B, M: list(torch.randperm(B, generator=torch.Generator().manual_seed(1)).split(M)))
batch("drawn_with_replacement", "How often is each row dealt?", "Rows are drawn with replacement.",
      "Use minibatch_indexes.",
      deal=lambda B, M: list(torch.randint(B, (B,)).split(M)))
batch("the_first_minibatch_only", "How many minibatches make a batch?", "Only the first minibatch is returned.",
      "A loop over all index arrays.", deal=lambda B, M: minibatch_indexes(B, M)[:1])
batch("blocks_dealt_whole", "Which rows share a minibatch, in every call?",
      "Whole blocks of neighbouring rows are dealt.", "Use minibatch_indexes.",
      deal=lambda B, M: [torch.arange(B).split(M)[i] for i in torch.randperm(B // M)])
batch("one_field_in_another_order", "Do all six fields go through the same index array?",
      "returns is dealt in another order than the other fields.",
      "Draw the index arrays once, use them for all six fields.",
      setting("returns", lambda flat, given: flat["returns"].flip(0)))


@MISTAKES.add("make_minibatches", nudge="Which action was taken at which observation?",
              pointer="Each field is shuffled with an order of its own: rows no longer belong together.",
              answer="Draw the index arrays once, use them for all six fields.")
def every_field_shuffled_apart(obs, logprobs, actions, advantages, values, obs_shape, action_shape, batch_size,
minibatch_size):
    columns = (obs.reshape(batch_size, *obs_shape), logprobs.reshape(-1), actions.reshape(batch_size, *action_shape),
               advantages.reshape(-1), (advantages + values).reshape(-1), values.reshape(-1))
    dealt = [[column[rows] for rows in minibatch_indexes(batch_size, minibatch_size)] for column in columns]
    return [SimpleNamespace(**dict(zip(FIELDS, parts))) for parts in zip(*dealt)]


def _normalised(x):
    return (x - x.mean()) / (x.std() + 1e-8)
