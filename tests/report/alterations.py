"""How tests of the claims alter made-up experiments, and judge them."""

from __future__ import annotations

from collections.abc import Callable

from adalook.report.claims.all import Claim, judge_claims
from tests.report import made_up
from tests.report.made_up import Raw, World


def judged(made: World) -> dict[str, Claim]:
    return {claim.id: claim for claim in judge_claims(made_up.load(made))}


def of(*groups: str, depth: int | None = None, deeper_than: int = 0, label: str = "") -> Callable[[Raw], bool]:
    """Records of some groups, of one depth or of greater depths, or with one label."""

    def fits(run: Raw) -> bool:
        own = run["parameters"].get("depth", run["parameters"].get("kappa_power", 9))
        return (
            run["group"] in groups
            and (depth is None or own == depth)
            and own > deeper_than
            and (not label or run["label"] == label)
        )

    return fits


def dearer(factor: float, *kinds: str) -> Callable[[Raw], None]:
    """Multiply queries of some kinds, such as 'tree' or 'simulated'; none: of all."""

    def change(run: Raw) -> None:
        for counted in run["queries"].values():
            for kind, numbers in counted.items():
                if not kinds or kind in kinds:
                    counted[kind] = [int(factor * number) for number in numbers]

    return change


def induced(power_short: float) -> Callable[[Raw], None]:
    """κ(θ) that misses γ^h by so many powers of γ."""

    def change(run: Raw) -> None:
        run["predicted"]["kappa_theta"] = run["model"]["discount"] ** (run["parameters"]["depth"] - power_short)

    return change
