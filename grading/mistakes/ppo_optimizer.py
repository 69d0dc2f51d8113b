"""Known mistakes of 03_ppo_details in the scheduler and the optimizer."""

import math

import torch

from grading.mistakes import Book

MISTAKES = Book()


def scheduler(name, nudge, pointer, answer, rate, groups=slice(None)):
    """Registers a wrong PPOScheduler; rate(self, k) -> learning rate after k calls of step()."""
    def __init__(self, optimizer, initial_lr, end_lr, num_updates):
        self.optimizer, self.initial_lr, self.end_lr, self.num_updates = optimizer, initial_lr, end_lr, num_updates
        self.own, self.calls = optimizer.param_groups[0]["lr"], 0

    def step(self):
        self.calls += 1
        for group in self.optimizer.param_groups[groups]:
            group["lr"] = rate(self, self.calls)
    wrong = type(name, (), {"__init__": __init__, "step": step})
    MISTAKES.add("ppo_scheduler", nudge=nudge, pointer=pointer, answer=answer)(wrong)


def line(self, k, start=None, end=None):
    """The right learning rate after k calls, unless start or end are others."""
    start, end = self.initial_lr if start is None else start, self.end_lr if end is None else end
    done = min(k, self.num_updates) / self.num_updates
    return start + done * (end - start)


LINE = "lr = initial_lr + min(calls, num_updates) / num_updates * (end_lr - initial_lr), for every param group"

scheduler("first_group_only", "How many parameter groups can an optimizer have?",
          "Only the first parameter group is moved.",
          "for group in self.optimizer.param_groups: group['lr'] = ...", line, slice(1))
scheduler("last_group_only", "How many parameter groups can an optimizer have?",
          "Only the last parameter group is moved.",
          "for group in self.optimizer.param_groups: group['lr'] = ...", line, slice(-1, None))
scheduler("compounding", "From which number does each step start?",
          "The factor is applied to the learning rate of the step before, so it compounds and is no straight line.",
          LINE,
          lambda self, k: (setattr(self, "now", getattr(self, "now", self.initial_lr)
                                   * (line(self, k) / self.initial_lr)), self.now)[1])
scheduler("ends_at_zero", "Where does your line end if end_lr is 0.25?", "end_lr is ignored: the line goes to 0.", LINE,
          lambda self, k: line(self, k, end=0.0))
scheduler("starts_at_the_optimizers",
          "Where does your line start if the optimizer was made with another learning rate?",
          "initial_lr is ignored: the line starts at the optimizer's own learning rate.", LINE,
          lambda self, k: line(self, k, start=self.own))
scheduler("one_update_ahead", "Which learning rate do you want after the first call, of num_updates?",
          "The learning rate is one step ahead of the line.", LINE, lambda self, k: line(self, k + 1))
scheduler("one_update_behind", "Which learning rate do you want after the last call?",
          "The learning rate is one step behind: after num_updates calls it is not yet end_lr.", LINE,
          lambda self, k: line(self, k - 1))
scheduler("off_by_one_in_the_length", "How many calls does it take from one end to the other?",
          "The line takes num_updates + 1 calls.", "Divide by num_updates.",
          lambda self, k: self.initial_lr + min(k, self.num_updates + 1) / (self.num_updates + 1)
          * (self.end_lr - self.initial_lr))
scheduler("too_short", "How many calls does it take from one end to the other?",
          "The line takes num_updates - 1 calls.",
          "Divide by num_updates.", lambda self, k: self.initial_lr + min(k,
          self.num_updates - 1) / (self.num_updates - 1)
          * (self.end_lr - self.initial_lr))
scheduler("goes_on_past_the_end", "What happens if step() is called once more after the end?",
          "After num_updates calls the learning rate goes on past end_lr.",
          "Stop counting at num_updates: min(calls, num_updates).",
          lambda self, k: self.initial_lr + k / self.num_updates * (self.end_lr - self.initial_lr))
scheduler("starts_again", "What happens if step() is called once more after the end?",
          "After num_updates calls the line starts again.", "Stop counting at num_updates: min(calls, num_updates).",
          lambda self, k: self.initial_lr + ((k - 1) % self.num_updates + 1) / self.num_updates
          * (self.end_lr - self.initial_lr))
scheduler("ends_swapped", "At which of the two ends does training begin?", "The line runs from end_lr to initial_lr.",
          LINE,
          lambda self, k: line(self, k, self.end_lr, self.initial_lr))
scheduler("constant", "Print the learning rate after every call.", "step() does not move the learning rate.", LINE,
          lambda self, k: self.initial_lr)
scheduler("geometric", "Is every step the same difference, or the same factor?",
          "The learning rate falls by the same factor at each call; it should fall by the same difference.", LINE,
          lambda self, k: self.initial_lr * (max(self.end_lr, 1e-8) / self.initial_lr)
          ** (min(k, self.num_updates) / self.num_updates))
scheduler("cosine", "Is the line straight?", "The learning rate follows a cosine; it should follow a straight line.",
          LINE,
          lambda self, k: self.end_lr + 0.5 * (self.initial_lr - self.end_lr)
          * (1 + math.cos(math.pi * min(k, self.num_updates) / self.num_updates)))
scheduler("whole_number_division", "What is 3 // 8?",
          "The fraction is a whole-number division: 0 until the end, then 1.", "calls / num_updates, with one slash.",
          lambda self, k: self.initial_lr + min(k,
          self.num_updates) // self.num_updates * (self.end_lr - self.initial_lr))
scheduler("fraction_of_initial", "Test your formula with end_lr = 0.25: where does it end?",
          "end_lr is added to a line that falls to 0, so it starts too high.", LINE,
          lambda self, k: line(self, k, end=0.0) + self.end_lr)


# make_optimizer -------------------------------------------------------------------------------------------------------

class PPOScheduler:
    """Replaced while the observer looks: a mistake lives in this module as a student's code lives in the notebook."""


def optimizer(name, nudge, pointer, answer, parameters=None, kind=torch.optim.Adam, scheduled=None, other=False,
**options):
    """Registers a wrong make_optimizer.

    parameters   agent -> what the optimizer moves
    options      of the optimizer
    scheduled    (initial_lr, end_lr, num_updates) -> what the scheduler is made with
    other        the scheduler gets another optimizer
    """
    def wrong(agent, num_updates, initial_lr, end_lr):
        own = parameters(agent) if parameters else agent.parameters()
        made = kind(own, **({"lr": initial_lr,
        "eps": 1e-5} if kind is not torch.optim.SGD else {"lr": initial_lr}) | options)
        given = (initial_lr, end_lr, num_updates)
        moved = torch.optim.Adam(agent.parameters()) if other else made
        return made, PPOScheduler(moved, *(scheduled(*given) if scheduled else given))
    wrong.__name__ = name
    MISTAKES.add("make_optimizer", nudge=nudge, pointer=pointer, answer=answer)(wrong)


ADAM = "optim.Adam(agent.parameters(), lr=initial_lr, eps=1e-5)"

optimizer("default_eps", "Which eps does Adam take if you name none?",
          "Adam's eps is 1e-8, torch's default; it should be 1e-5.",
          ADAM, eps=1e-8)
optimizer("eps_too_large", "Compare your eps with the text, digit by digit.",
          "Adam's eps is 1e-3; it should be 1e-5.", ADAM,
          eps=1e-3)
optimizer("actor_only", "Who moves the critic?", "The optimizer has only the actor's parameters.", ADAM,
          parameters=lambda agent: agent.actor.parameters())
optimizer("critic_only", "Who moves the actor?", "The optimizer has only the critic's parameters.", ADAM,
          parameters=lambda agent: agent.critic.parameters())
optimizer("two_networks_by_name", "Could an agent have parameters outside of its two networks?",
          "The optimizer has the parameters of actor and critic, but not the agent's others, such as a log_std.", ADAM,
          parameters=lambda agent: [*agent.actor.parameters(), *agent.critic.parameters()])
optimizer("plain_sgd", "Which optimizer does the text name?", "This is plain gradient descent; it should be Adam.",
          ADAM,
          kind=torch.optim.SGD)
optimizer("adamw", "Which optimizer does the text name?",
          "This is AdamW, which also shrinks the weights; it should be Adam.",
          ADAM, kind=torch.optim.AdamW)
optimizer("rmsprop", "Which optimizer does the text name?", "This is RMSprop; it should be Adam.", ADAM,
          kind=torch.optim.RMSprop)
optimizer("default_learning_rate", "Which learning rate has your optimizer before the first step of the scheduler?",
          "The optimizer has torch's default learning rate 0.001 instead of initial_lr.", ADAM, lr=1e-3)
optimizer("weight_decay", "What pulls the weights towards 0 in your version?",
          "Adam has a weight decay; it should have none.",
          ADAM, weight_decay=0.01)
optimizer("slow_second_moment", "Which betas does your Adam have?",
          "Adam's betas are changed; torch's defaults are meant.", ADAM,
          betas=(0.5, 0.99))
optimizer("ends_swapped_in_the_scheduler", "In which order does PPOScheduler take its arguments?",
          "initial_lr and end_lr are swapped in the scheduler.",
          "PPOScheduler(optimizer, initial_lr, end_lr, num_updates)",
          scheduled=lambda start, end, n: (end, start, n))
optimizer("end_lr_not_passed_on", "Where does the learning rate end if end_lr is 0.25?",
          "The scheduler gets 0 for end_lr.",
          "PPOScheduler(optimizer, initial_lr, end_lr, num_updates)", scheduled=lambda start, end, n: (start, 0.0, n))
optimizer("num_updates_one_too_few", "How many updates are there?", "The scheduler gets num_updates - 1.",
          "PPOScheduler(optimizer, initial_lr, end_lr, num_updates)", scheduled=lambda start, end, n: (start, end,
          n - 1))
optimizer("schedules_another_optimizer", "Whose learning rate does your scheduler move?",
          "The scheduler is given another optimizer than the one you return.",
          "One optimizer: make it, give it to PPOScheduler, return both.", other=True)
