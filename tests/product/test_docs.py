"""Everything that the documentation names exists, and everything for users is documented."""

import itertools
import re
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from typer.core import TyperGroup
from typer.main import get_command

from lab import golang
from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import lint
from mpijob_elastic.capabilities import admission
from mpijob_elastic.capabilities.autoscaling.autoscaler import SPEC_DIGEST
from mpijob_elastic.capabilities.disruption import signs
from mpijob_elastic.capabilities.disruption.eviction import EVICTION_MARK
from mpijob_elastic.capabilities.kueue.topology import DOMAIN
from mpijob_elastic.cli import app, exit_codes
from mpijob_elastic.cli.exit_codes import Exit
from mpijob_elastic.decide import (
    drain,
    frozen_execs,
    host_list,
    launcher_start,
    lost_ranks,
    moves,
    notices,
    reminders,
    state,
)
from mpijob_elastic.decide.state import SETTLE
from mpijob_elastic.install import overlays
from mpijob_elastic.install.overlays import Overlay
from mpijob_elastic.model import bounds, phrases, policy
from mpijob_elastic.model.mpijob import MPIJob
from mpijob_elastic.names import SUSPEND
from mpijob_elastic.telemetry.metrics import Metrics
from scripts import commands_page, compatibility, rights_table, signs_table
from tests.campaign.__main__ import PARTS
from webhook.admission import AdmissionMetrics as WebhookMetrics

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
PROGRAM = get_command(app)
METRIC = re.compile(r"\bmpijob_elastic_[a-z_]+\b")
# The first part of a path that names a module, a folder or a file of ours.
OURS = {
    path.name
    for root in (ROOT, ROOT / "mpijob_elastic")
    for path in root.iterdir()
    if path.is_dir()
}
OURS -= {"docs", "dist"}
# The annotations that our own programs write.
OURS_WRITTEN = {
    names.STATUS,
    names.PHASE,
    names.CHANGE,
    names.SCALED_BY,
    names.REFRESHED,
    names.MEMORY,
    names.HISTORY,
}
OURS_WRITTEN |= {EVICTION_MARK, SPEC_DIGEST, DOMAIN, names.PUT_BACK}
# Words of a sentence that two pages do not share by chance.
OF_ITS_OWN = 8
# Lines of the README that a reader sees before he scrolls.
FIRST_SCREEN = 40
FOLDERS = "mpijob_elastic|webhook|upgrade|lab|bench|tests"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def rows(page: Path, cell: str) -> list[list[str]]:
    """Return the cells of each table row whose first cell matches."""
    lines = [
        line for line in page.read_text().replace(r"\|", "/").splitlines() if line.startswith("|")
    ]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if re.fullmatch(cell, row[0])]


def row(page: Path, name: str) -> list[str]:
    [found] = rows(page, re.escape(f"`{name}`"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    ours = [target for target in targets if "://" not in target]
    assert [target for target in ours if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text())
    assert [
        f"{file}#{heading}"
        for file, heading in links
        if heading not in anchors(page.parent / file if file else page)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_modules_and_files_exist(page: Path) -> None:
    """A path in backticks is relative to the root or to the main package."""
    named = re.findall(
        rf"`((?:\w+/)+\w+(?:\.py|\.yaml|\.md)?|(?:{FOLDERS})(?:\.\w+)+)`", page.read_text()
    )
    paths = {path.replace(".", "/") + ".py" if "/" not in path else path for path in named}
    ours = {path for path in paths if path.split("/")[0] in OURS}
    assert {
        path
        for path in ours
        if not any((root / path).exists() for root in (ROOT, ROOT / "mpijob_elastic"))
    } == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_a_page_names_exist(page: Path) -> None:
    named = set(re.findall(r"`([\w/]+\.py)::(\w+)`", page.read_text()))
    assert {
        (path, name) for path, name in named if f"def {name}(" not in (ROOT / path).read_text()
    } == set()


def test_each_part_of_the_campaign_is_explained() -> None:
    assert {
        cells[0].strip("`") for cells in rows(DOCS / "records" / "campaign.md", "`[a-z-]+`")
    } == set(PARTS)


def test_no_change_is_listed_twice() -> None:
    lines = [
        line
        for line in (ROOT / "CHANGELOG.md").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert sorted(set(lines)) == sorted(lines)


def test_each_page_is_in_the_index_and_on_the_site() -> None:
    pages = {
        str(page.relative_to(DOCS)) for page in PAGES if page.parent in (DOCS, DOCS / "records")
    }
    listed = re.findall(
        r"^\| \[[^]]+\]\(([^)]+)\) \|", (DOCS / "index.md").read_text(), re.MULTILINE
    )
    navigation = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert navigation == ["index.md", *listed]
    assert set(navigation) == pages | {"decisions/README.md"}


def test_each_decision_is_listed_with_its_title() -> None:
    records = {
        page.name: page.read_text().splitlines()[0][7:]
        for page in (DOCS / "decisions").glob("0*.md")
    }
    index = (DOCS / "decisions" / "README.md").read_text()
    assert dict(re.findall(r"^\| \[\d+\]\(([^)]+)\) \| (.+) \|$", index, re.MULTILINE)) == records


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_that_a_page_types_exist(page: Path) -> None:
    """What follows `mpijob-elastic COMMAND` on a line, up to a comment, a pipe or the end of the code."""
    text = re.sub(r" '[^'`\n]+'", "", page.read_text())  # a line for another shell
    typed = re.findall(rf"{names.PROGRAM} ([a-z]+ [^`\n#|]+)", text)
    assert [
        f"{command} {option}" for command in typed for option in unknown_options(command.split())
    ] == []


def test_commands_that_the_dashboard_offers_exist() -> None:
    page = ROOT / "mpijob_elastic" / "cli" / "dashboard" / "page" / "job.js"
    typed = [line.split() for line in re.findall(rf"`{names.PROGRAM} ([^`]+)`", page.read_text())]
    assert {words[0] for words in typed} == {"explain", "watch", "scale", "logs"}
    assert [option for words in typed for option in unknown_options(words)] == []


def unknown_options(words: list[str]) -> list[str]:
    """Return the options that a command of ours does not have; what is no command of ours has all."""
    command = PROGRAM
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if command is PROGRAM:
        return []
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    ours = takewhile(lambda word: word != "--", words)  # after that come those of another command
    given = {word.partition("=")[0].rstrip(").,:;") for word in ours if word.startswith("-")}
    return sorted(given - known - {"--help"})


def test_each_annotation_of_users_is_in_the_first_table_and_no_other() -> None:
    table = rows(DOCS / "annotations.md", f"`{names.PREFIX}[a-z-]+`")
    of_users = {cells[0].strip("`") for cells in table if len(cells) == 4}
    of_ours = {cells[0].strip("`") for cells in table if len(cells) == 3}
    assert of_users == capabilities.KEYS
    assert of_ours == OURS_WRITTEN


def test_annotations_that_pages_name_exist() -> None:
    ours = {*OURS_WRITTEN, names.NAMESPACE_OPT_OUT, names.NO_DEFAULT_QUEUE}
    known = capabilities.KEYS | ours | names.GATES
    for page in (ROOT / "README.md", *DOCS.glob("*.md")):
        named = set(
            re.findall(rf"(?<![\w/.-]){names.PREFIX}(?!{names.PROGRAM})[a-z-]+", page.read_text())
        )
        assert {one.rstrip("-") for one in named} <= known, page.name


def test_values_and_defaults_of_annotations_are_those_of_the_code() -> None:
    page = DOCS / "annotations.md"
    drain = row(page, names.DRAIN_TIMEOUT)
    assert phrases.parse_duration(drain[2].strip("`")) == policy.DEFAULT_DRAIN_TIMEOUT
    assert f"to `{phrases.duration(policy.LONGEST_DRAIN_TIMEOUT)}`" in drain[1]
    for bound in (names.MIN_REPLICAS, names.MAX_REPLICAS):
        assert row(page, bound)[1] == f"whole number from 1 to {bounds.MOST_WORKERS}"
    assert row(page, names.REPLACE_FAILED_WORKERS)[2] == '`"true"`'
    assert row(page, SUSPEND)[2] == '`"false"`'


def test_each_metric_is_documented_with_its_kind_and_labels_and_no_other() -> None:
    metrics = [*vars(Metrics(CollectorRegistry())).values(), *vars(WebhookMetrics()).values()]
    served = {}
    for metric in metrics:
        if isinstance(metric, MetricWrapperBase):
            [family] = metric.describe()
            name = f"{family.name}_total" if family.type == "counter" else family.name
            served[name] = (family.type, list(metric._labelnames))
    page = DOCS / "metrics.md"
    cells = {cells[0].strip("`"): cells[1] for cells in rows(page, f"`{METRIC.pattern}`")}
    # A cell is `counter; LABELS`, and where there is one label perhaps `: VALUES`.
    documented = {
        name: (cell.partition(";")[0], re.findall(r"`(\w+)`", cell.partition(":")[0]))
        for name, cell in cells.items()
    }
    assert documented == served
    for text in (
        page.read_text(),
        (DOCS / "troubleshooting.md").read_text(),
        (DOCS / "annotations.md").read_text(),
    ):
        assert {name.removesuffix("_bucket") for name in METRIC.findall(text)} <= served.keys()


def test_each_alert_is_in_the_table() -> None:
    [rule] = [
        one for one in overlays.rendered(Overlay.PROMETHEUS) if one["kind"] == "PrometheusRule"
    ]
    alerts = {alert["alert"] for group in rule["spec"]["groups"] for alert in group["rules"]}
    assert {
        cells[0].strip("`") for cells in rows(DOCS / "metrics.md", r"`MPIJobElastic\w+`")
    } == alerts


def test_each_event_and_notice_is_explained() -> None:
    """Reasons are the only CamelCase words of two or more parts among the strings of decide."""
    package, quiet = (
        ROOT / "mpijob_elastic",
        {
            "api",
            "facts",
            "wire",
            "bodies",
            "live",
            "signs",
            "known_signs",
            "actions",
            "eviction",
            "admission",
        },
    )
    rooms = (path for path in (package / "capabilities").rglob("*.py") if path.stem not in quiet)
    sources = [path.read_text() for path in (*(package / "decide").glob("*.py"), *rooms)]
    reasons = set(re.findall(r'"((?:[A-Z][a-z]+){2,})"', "\n".join(sources)))
    of_one_part = {
        "Draining",
        "Disruption",
        "Suspended",
        "Resumed",
        "Queued",
        "Admitted",
        "Enqueued",
        "Dequeued",
    }
    of_one_part |= {"Parked", "Unparked"}
    assert "HostsPublished" in reasons
    table = {cells[0].strip("`") for cells in rows(DOCS / "annotations.md", r"`[A-Z]\w+`")}
    in_names = {names.REASON_HANDED_OVER, names.REASON_STILL_ELASTIC}
    assert table == reasons | of_one_part | in_names | {notices.REFUSED}


def test_each_cause_of_explain_is_named() -> None:
    source = "\n".join(
        path.read_text() for path in (ROOT / "mpijob_elastic" / "diagnosis").glob("*.py")
    )
    causes = re.findall(
        r'(?:cause ?= ?|_due\(\s*case, |else |(?:fine|waiting|wrong|Finding)\)?\(\s*)"([a-z]+(?:-[a-z]+)*)"',
        source,
    )
    page = (DOCS / "annotations.md").read_text()
    assert {"out-of-memory", "no-right", "no-operator", "not-known"} <= set(causes)
    assert [cause for cause in causes if f"`{cause}`" not in page] == []


def test_the_page_of_commands_is_that_of_the_code() -> None:
    """`make docs` writes it."""
    assert commands_page.PAGE.read_text() == commands_page.page()


def test_the_rights_of_the_page_are_those_of_the_manifests() -> None:
    """`make docs` writes them."""
    assert rights_table.PAGE.read_text() == rights_table.page()


def test_each_guarantee_is_beside_a_test() -> None:
    guarantees = rows(DOCS / "architecture.md", "[1-8]")
    assert [cells[0] for cells in guarantees] == [str(number) for number in range(1, 9)]
    assert [cells[1] for cells in guarantees if "::" not in cells[2]] == []


def test_the_go_that_the_readme_asks_for_is_that_of_the_lab() -> None:
    assert "Go {}.{}+".format(*golang.OLDEST) in (ROOT / "README.md").read_text()


def test_each_command_ends_with_codes_of_the_one_table() -> None:
    table = dict(re.findall(r"(?<=[:;] )(\d+) ([^;]+?)(?=[;.])", exit_codes.HELP))
    assert {int(code) for code in table} == set(Exit)
    for path in sorted([*(ROOT / "mpijob_elastic" / "cli").rglob("*.py"), *PAGES]):
        for said in re.findall(r"Exit codes: (0 [^.`]+)\.", " ".join(path.read_text().split())):
            codes = dict(re.findall(r"(?:^|; )(\d+) ([^;]+)", said))
            assert codes.keys() <= table.keys(), path
            assert (codes["2"], codes["130"]) == (table["2"], table["130"]), path


def test_a_page_makes_a_plain_job_elastic_without_mistakes() -> None:
    texts = re.findall(r"```yaml\n(.*?)```", (DOCS / "elastic-jobs.md").read_text(), re.DOTALL)
    before, after = (
        capabilities.of(msgspec.convert(yaml.safe_load(text), MPIJob)) for text in texts
    )
    assert (before.elastic, after.elastic, after.problems) == (False, True, ())
    assert (after.policy.min_replicas, after.policy.max_replicas, after.policy.drain_timeout) == (
        1,
        4,
        120.0,
    )


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("the first Ready worker waits up to {} s for the others", host_list.GATHER),
        ("next change waits until {} s after the launcher was touched", SETTLE),
        ("no host is added until {} s after the replacement was created", lost_ranks.REFORM),
        ("for {} s after the touch if a rank was seen before", drain.QUIET_AFTER_BUSY),
        ("for {} s if none was", drain.QUIET_WITHOUT_BUSY),
        ("up to {} times", len(state.RELAUNCHED.delays)),
        ("deleted {} s after every host of the hostfile runs", launcher_start.STUCK_AFTER),
        ("then after {} s", state.REPLACED.delays[1]),
        (
            "looks into the launcher by `exec` {} s after a listed pod has gone",
            frozen_execs.FIRST_LOOK,
        ),
        ("succeeds within {} s of a change of its list", notices.SUSPICIOUS_WITHIN),
    ],
)
def test_numbers_of_the_architecture_are_those_of_the_code(words: str, value: float) -> None:
    page = " ".join((DOCS / "architecture.md").read_text().split())
    assert words.format(f"{value:g}") in page


def test_the_times_of_reminders_are_those_of_the_code() -> None:
    times = [f"{at:g}" for at in itertools.accumulate(reminders.PAUSES)]
    words = f"{', '.join(times[:-1])} and {times[-1]} s after the touch for the change"
    for page in ("architecture.md", "decisions/0042-a-lost-word-is-repeated.md"):
        assert words in " ".join((DOCS / page).read_text().split())


def test_the_numbers_of_the_page_on_spot_nodes_are_those_of_the_code() -> None:
    page = " ".join((DOCS / "spot.md").read_text().split())
    _, second, third = state.MOVED.delays
    assert f"until a newcomer has been Ready for {moves.SEASONED:g} s" in page
    assert f"is moved again after {second:g} s, and after {third / 60:g} minutes" in page
    assert f"unchanged for {signs.FALSE_FOR / 60:g} minutes" in page


def test_what_the_page_on_compatibility_says_was_run() -> None:
    """`make docs` writes it."""
    assert compatibility.PAGE.read_text() == compatibility.page()


def test_the_signs_of_the_page_on_spot_nodes_are_those_of_the_code() -> None:
    """`make docs` writes them."""
    assert signs_table.PAGE.read_text() == signs_table.page()


@pytest.mark.parametrize("name", ["mpi", "ddp", "torchrun"])
def test_an_example_with_mpi_is_elastic_without_mistakes(name: str) -> None:
    path = DOCS / "examples" / "elastic-mpi" / f"{name}.yaml"
    manifest = yaml.safe_load(path.read_text())
    job = msgspec.convert(manifest, MPIJob)
    facts = capabilities.of(job)
    assert (facts.elastic, facts.names_elastic, facts.problems) == (True, True, ())
    assert lint.created(job, facts, admission.ALL) == ()
    assert manifest["metadata"]["name"] == name
    [container] = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
    programs = [word for word in container["command"] if word.startswith("/examples/")]
    assert programs
    assert [one for one in programs if not (path.parent / Path(one).name).exists()] == []


def sentences(page: Path) -> set[str]:
    """Return the sentences, cells and lines of code of a page that are long enough to be its own."""
    text = re.sub(r"\]\([^)]+\)", "]", page.read_text())
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    code = re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [*re.split(r"(?<=[.:])\s+|\n\n|\|", prose), *"".join(code).splitlines()]
    return {" ".join(one.split()) for one in found if len(one.split()) >= OF_ITS_OWN}


def test_the_first_pages_of_sources_and_site_do_not_repeat_each_other() -> None:
    assert sentences(ROOT / "README.md") & sentences(DOCS / "index.md") == set()


@pytest.mark.parametrize(
    "words",
    [
        "make demo",
        "make test",
        "| train models | [Make a job elastic](docs/elastic-jobs.md)",
        "| run the cluster | [Install](docs/install.md)",
        "(docs/install.md#when-it-is-down)",
        "(docs/records/performance.md#what-an-installation-takes)",
    ],
)
def test_the_first_screen_of_the_readme_leads_on(words: str) -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert words in "\n".join(lines[:FIRST_SCREEN])


def asked(kind: str, resource: str, unit: str) -> int:
    """Return what all pods of an installation together request or are limited to."""
    total = 0
    for one in overlays.rendered(overlays.DEFAULT):
        if one["kind"] == "Deployment":
            [container] = one["spec"]["template"]["spec"]["containers"]
            text = container["resources"][kind][resource]
            total += one["spec"]["replicas"] * int(text.removesuffix(unit))
    return total


def test_the_readme_says_what_the_pods_of_an_installation_ask_for() -> None:
    requests = f"request {asked('requests', 'memory', 'Mi')} MiB and {asked('requests', 'cpu', 'm')}m of CPU"
    limits = f"may use {asked('limits', 'memory', 'Mi') / 1024:g} GiB"
    assert f"{requests}, and {limits}" in " ".join((ROOT / "README.md").read_text().split())
