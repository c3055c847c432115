"""payments: an orchestrator with a tool that pays, and counts who was paid.

    with Payments() as payments:
        payments.after = lambda order: payments.hang_up()     # paid, but nobody is told
        weir = start_weir(config=..., env=payments.env)

`pay` is not idempotent: each call that comes here is an effect outside of the daemon.
"""
import crawbl
from orchestrator import Orchestrator, agent


class HungUp(Exception):
    """The connection of this call breaks instead of an answer."""


class Payments(Orchestrator):
    def __init__(self, **options):
        self.made = []  # orders, as they were paid
        self.before = self.after = lambda order: None  # called around each payment
        super().__init__(**options)
        self.agents[crawbl.WORKSPACE] = [agent("manager", role="manager", prompt="You pay.")]
        self.tools["pay"] = self.pay

    def pay(self, args, _):
        order = args["order"]
        self.before(order)
        self.made.append(order)
        self.after(order)
        return f"paid {order}"

    @staticmethod
    def hang_up():
        raise HungUp
