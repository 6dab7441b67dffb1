"""Print the table of the peers bench and check its goals."""

from benches.fetch import GOAL_CONNECTIONS, Results, get_latency, get_rate, get_rate_ratio, report_goal

# Title of the row, the product's workload, and MLflow's.
PAIRS = (
    ("fetch by label", "fetch", "MLflow fetch"),
    ("as its client does", "fetch", "MLflow load_prompt"),
    ("create a version", "create", "MLflow create"),
    ("move a label", "move", "MLflow move"),
)
COLUMNS = ("p50 ms", "p99 ms", "refused", "MLflow/s", "p50 ms", "p99 ms", "refused", "times", "p99 ÷")
# Below this number of operations in a round, the 99th percentile is the worst one. It is marked in the table.
MIN_SAMPLES, WORST_MARK = 100, "w"
FETCH_RATE_GOAL, FETCH_LATENCY_GOAL, MOVE_RATE_GOAL = 10.0, 10.0, 1.0
VERSION_RATE_GOALS = {"postgresql": 1.3, "sqlite": 1.0}


def print_heading(kind: str) -> None:
    print(f"\n{kind:20}{'connections':>12}{'ours/s':>9}" + "".join(f"{name:>9}" for name in COLUMNS))


def print_table(connections: int, results: Results) -> None:
    for title, product, peer in PAIRS:
        print(
            f"{title:20}{connections:>12}{format_figures(results, product)}{format_figures(results, peer)}"
            f"{get_rate_ratio(results, product, peer):>9.1f}"
            f"{get_latency_ratio(results, product, peer):>8.1f}{get_worst_mark(results, product, peer)}"
        )
    print(f"{'bare view':20}{connections:>12}{format_figures(results, 'bare view')}")
    shares = [result["share"] for kind in results.values() for result in kind]
    print(f"{'':20} ({WORST_MARK}: the worst, because a round had fewer than {MIN_SAMPLES} operations)")
    print(f"{'':20} (the load generator used at most {max(shares):.0%} of a core)", flush=True)


def print_shared_edit(results: Results, prompts: int) -> None:
    """Print the versions per second of an edit shared by many prompts; it has no goal."""
    product, peer = (get_rate(results, name) * prompts for name in ("shared", "MLflow shared"))
    print(
        f"a sentence of {prompts} prompts, 1 connection: {product:,.0f} versions/s, MLflow {peer:,.0f}, "
        f"{get_rate_ratio(results, 'shared', 'MLflow shared'):.1f} times"
    )


def format_figures(results: Results, name: str) -> str:
    p50, p99 = (get_latency(results, name, percentile) for percentile in ("p50", "p99"))
    return (
        f"{get_rate(results, name):>9,.0f}{p50:>9.2f}{p99:>8.2f}{get_worst_mark(results, name)}"
        f"{get_refused_share(results, name):>9.1%}"
    )


def get_worst_mark(results: Results, *names: str) -> str:
    counts = [result["requests"] + result["refused"] for name in names for result in results[name]]
    return WORST_MARK if min(counts) < MIN_SAMPLES else " "


def get_latency_ratio(results: Results, product: str, peer: str) -> float:
    """Return the ratio of MLflow's 99th percentile to the product's."""
    return get_latency(results, peer, "p99") / get_latency(results, product, "p99")


def get_refused_share(results: Results, name: str) -> float:
    """Return the share of refused operations, which do not count for the rate."""
    total = sum(result["requests"] + result["refused"] for result in results[name])
    return float(sum(result["refused"] for result in results[name]) / total)


def check_goals(kind: str, results: Results) -> bool:
    prefix = f"{kind}, {GOAL_CONNECTIONS} connections: "
    goals = [
        report_goal(
            f"{prefix}fetch over MLflow's",
            get_rate_ratio(results, "fetch", "MLflow fetch"),
            FETCH_RATE_GOAL,
            "×",
        ),
        report_goal(
            f"{prefix}MLflow's p99 over ours",
            get_latency_ratio(results, "fetch", "MLflow fetch"),
            FETCH_LATENCY_GOAL,
            "×",
        ),
        report_goal(
            f"{prefix}versions over MLflow's",
            get_rate_ratio(results, "create", "MLflow create"),
            VERSION_RATE_GOALS[kind],
            "×",
        ),
        report_goal(
            f"{prefix}label moves over MLflow's",
            get_rate_ratio(results, "move", "MLflow move"),
            MOVE_RATE_GOAL,
            "×",
        ),
    ]
    return all(goals)
