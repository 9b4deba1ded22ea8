"""What a launcher's command starts, wherever horovodrun stands in it: a table of commands as people write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mpijob_elastic.model import launch_command
from mpijob_elastic.model.launch_command import HOROVODRUN, Launch

SCRIPT = "/etc/mpi/discover_hosts.sh"
OPTIONS = f"-np 2 --min-np 1 --max-np 4 --host-discovery-script {SCRIPT}"
LINE = f"horovodrun {OPTIONS} python t.py"
WORDS = LINE.split()
WHOLE = Launch(program=HOROVODRUN, np=2, min_np=1, max_np=4, discovery_script=SCRIPT)
# A step on one process, before or after training.
STEP = "horovodrun -np 1 -H localhost:1 python step.py"


def launch(**options: Any) -> Launch:
    """The launch whose discovery script is known, and nothing else but this."""
    return Launch(**{"program": HOROVODRUN, "discovery_script": SCRIPT, **options})


ALL_COMPUTED = launch(computed=frozenset({"np", "min_np", "max_np"}))

# Commands that start WHOLE.
IN_WORDS: Mapping[str, Sequence[str]] = {
    "the words themselves": WORDS,
    "a path": ["/opt/conda/bin/horovodrun", *WORDS[1:]],
    "gosu": ["gosu", "mpi", *WORDS],
    "su-exec": ["su-exec", "1000:1000", *WORDS],
    "nice": ["nice", "-n", "5", *WORDS],
    "nice with a number": ["nice", "-10", *WORDS],
    "ionice": ["ionice", "-c", "2", "-n7", *WORDS],
    "catchsegv": ["catchsegv", *WORDS],
    "tini": ["/sbin/tini", "-g", "--", *WORDS],
    "tini with a signal": ["tini", "-vvp", "SIGTERM", "--", *WORDS],
    "dumb-init": ["dumb-init", "--rewrite", "15:2", *WORDS],
    "sudo": ["sudo", "-E", "-u", "mpi", *WORDS],
    "sudo, letters together": ["sudo", "-Eu", "mpi", "A=b", *WORDS],
    "sudo, long": ["sudo", "--preserve-env", "--user=mpi", *WORDS],
    "conda": ["conda", "run", "-n", "e", "--no-capture-output", *WORDS],
    "micromamba": ["micromamba", "run", "--name", "e", *WORDS],
    "poetry": ["poetry", "run", *WORDS],
    "uv": ["uv", "run", "--with", "torch", *WORDS],
    "stdbuf": ["stdbuf", "-oL", "-e", "L", *WORDS],
    "timeout": ["timeout", "24h", *WORDS],
    "timeout with options": ["timeout", "--signal", "INT", "-k", "30", "24h", *WORDS],
    "env -i": ["env", "-i", "PATH=/usr/bin", *WORDS],
    "env -u": ["env", "-u", "A", "-C", "/w", "B=c", *WORDS],
    "numactl": ["numactl", "--cpunodebind", "0", "-m0", *WORDS],
    "taskset": ["taskset", "-c", "0-3", *WORDS],
    "nsys": ["nsys", "profile", "-o", "/logs/r", "--trace=cuda", *WORDS],
    "wrapper in a wrapper": ["tini", "--", "nice", "timeout", "1h", "env", "A=b", *WORDS],
    "python": ["python3", "-u", "/opt/conda/bin/horovodrun", *WORDS[1:]],
    "a module": ["python", "-m", "horovod.runner.launch", *WORDS[1:]],
    "a module, options first": [
        *("python3.11", "-W", "ignore", "-um", "horovod.runner.launch"),
        *WORDS[1:],
    ],
    "another horovodrun's options": [
        *("horovodrun", "-np", "2", "--min-np", "1", "--max-np", "4", "--start-timeout", "60"),
        *("--network-interfaces", "eth0", "--log-level", "INFO"),
        *("--host-discovery-script", SCRIPT, "python"),
    ],
    "shortened": [
        *("horovodrun", "--verb", "-n", "2", "--min-num", "1", "--max-num=4"),
        *("--host-discovery", SCRIPT, "python", "t.py"),
    ],
    "with equals signs": [
        *("horovodrun", "-np=2", "--min-np=1", "--max-np=4"),
        *(f"--host-discovery-script={SCRIPT}", "python", "t.py"),
    ],
    "long names": [
        *("horovodrun", "--num-proc", "2", "--min-num-proc", "1", "--max-num-proc=4"),
        *("--host-discovery-script", SCRIPT, "python", "t.py"),
    ],
    "a double dash": [*WORDS[:-2], "--", "python", "t.py"],
    "the last value of an option counts": ["horovodrun", "-np", "9", *WORDS[1:]],
    "letters with their values": ["horovodrun", "-p22", "-Hw:1", *WORDS[1:]],
}
SHELLS: Mapping[str, Sequence[str]] = {
    "sh": ["sh", "-c", LINE],
    "letters together": ["bash", "-cx", LINE],
    "letters and an option": ["bash", "-euxo", "pipefail", "-c", f"cd /w\n{LINE}"],
    "an option after -c": ["bash", "-c", "-e", LINE],
    "a double dash": ["bash", "-c", "--", LINE],
    "a plus": ["bash", "+x", "-c", LINE],
    "login": ["bash", "--login", "-c", LINE],
    "rcfile": ["bash", "--rcfile", "/x", "-c", LINE],
    "busybox": ["busybox", "sh", "-c", LINE],
    "su": ["su", "mpi", "-c", LINE],
    "su, a login shell": ["su", "-", "mpi", "--command", LINE],
    "runuser": ["runuser", "-u", "mpi", "--", *WORDS],
    "env -S": ["env", "-S", LINE],
    "a wrapper and a shell": ["tini", "--", "timeout", "1d", "bash", "-lc", LINE],
    "a shell and a wrapper": ["sh", "-c", f"exec nice -n5 {LINE}"],
    "a shell in a shell": ["sh", "-c", f"bash -c '{LINE}'"],
    "eval": ["bash", "-c", f'eval "{LINE}"'],
}
# Scripts of a shell that start WHOLE.
SCRIPTS: Mapping[str, str] = {
    "another horovodrun before": f"{STEP} && {LINE}",
    "another horovodrun after": f"{LINE} && {STEP}",
    "another mpirun before": f"mpirun -np 2 --allow-run-as-root hostname && {LINE}",
    "another mpirun after": f"{LINE} ; mpirun -np 1 python report.py",
    "the last that is elastic": f"{LINE.replace('-np 2', '-np 3')} || {LINE}",
    "help before": f"horovodrun -h | head -1; {LINE}",
    "version before": f"horovodrun --version\n{LINE}",
    "check-build before": f"horovodrun --check-build && {LINE}",
    "check-build, shortened, after": f"{LINE}; horovodrun -cb; horovodrun --check",
    "which": f"command -v horovodrun && {LINE}",
    "while": f"while true; do {LINE} && break; done",
    "while not": f"while ! {LINE}; do sleep 5; done",
    "until": f"until {LINE}; do sleep 5; done",
    "for": f"for i in 1 2 3; do {LINE} && break; done",
    "for with arithmetic": f"for ((i=0; i<3; i++)); do {LINE} && break; done",
    "if": f"if {LINE}; then echo ok; fi",
    "else": f"if [ -f /data/ok ]; then exit 0; else {LINE}; fi",
    "elif": f"if a; then b; elif {LINE}; then c; fi",
    "case": f"case $1 in train|fit) {LINE} ;; *) echo usage ;; esac",
    "case with parentheses": f"case $1 in\n  (a) b;;\n  (train)\n {LINE};;\nesac",
    "case in a subshell": f"(case $1 in a) b;; esac; {LINE})",
    "function": f"run() {{ {LINE}; }}\nrun",
    "function, the word": f"function run {{ {LINE}; }}; run",
    "braces": f"{{ {LINE}; }} 2>&1 | tee log",
    "subshell": f"(cd /workspace && {LINE})",
    "background": f"{LINE} & wait $!",
    "pipe": f"set -o pipefail; {LINE} 2>&1 | tee /logs/out",
    "redirection first": f"2>/logs/err {LINE}",
    "redirection in the middle": LINE.replace("-np 2", "-np 2 2>&1 >/logs/out"),
    "redirection of both": LINE.replace("-np 2", "-np 2 &>>/logs/out"),
    "process substitution": f"{LINE} > >(tee log) 2> >(tee err >&2)",
    "here-string": f"cat <<< 'horovodrun -np 9'; {LINE}",
    "here-document": f"cat > hosts <<EOF\nhorovodrun -np 9 --min-np 9\nEOF\n{LINE}",
    "here-document, quoted": f"cat <<-'E O F' > x\n\thorovodrun 'x\n\tE O F\n{LINE}",
    "two here-documents": f"cat <<A <<B; {LINE}\nhorovodrun -np 8\nA\nhorovodrun -np 9\nB\n",
    "here-document of a shell": f"bash -s <<EOF\n{LINE}\nEOF\n",
    "here-document of another user": f"sudo -u mpi bash <<'EOF'\nset -e\n{LINE}\nEOF",
    "command substitution": f"OUT=$({LINE})",
    "quoted command substitution": f'echo "took $(  {LINE} )"',
    "backticks": f"OUT=`{LINE}`",
    "line continued": LINE.replace("--max", "\\\n  --max"),
    "variables of the command": f"A=b C='d e' {LINE}",
    "comment": f"# don't\n{LINE} # horovodrun -np 9",
    "an array is data": f"ARGS=(horovodrun -np 9 {OPTIONS})\n{LINE}",
    "arithmetic": f"(( N > 1 )) || N=$((N * 2)); {LINE}",
    "a default with a brace": f'D=${{D:-"}}"}}; {LINE}',
    "quoted options": LINE.replace("--min-np 1", "'--min-np' \"1\""),
    "time": f"time -p {LINE}",
    "exec": f"exec -a train {LINE}",
}


@pytest.mark.parametrize(
    "command",
    [
        *(pytest.param(words, id=name) for name, words in {**IN_WORDS, **SHELLS}.items()),
        *(pytest.param(["bash", "-c", script], id=name) for name, script in SCRIPTS.items()),
    ],
)
def test_the_command_that_trains_is_found(command: Sequence[str]) -> None:
    assert launch_command.parse(command) == WHOLE


BY_NAME = [
    *("horovodrun", "-np", "$(NP)", "--min-np", "$(MIN_NP)", "--max-np", "$(MAX_NP)"),
    *("--host-discovery-script", SCRIPT, "python", "t.py"),
]
IN_SHELL = LINE.replace("2", "$NP").replace("-np 1", "-np ${MIN_NP}").replace("4", "$MAX_NP")
LITERAL = [("MIN_NP", "1"), ("MAX_NP", "4"), ("NP", "2")]
ARENA = "horovodrun -np $(( ${workers} * ${gpus} )) --min-np $((${minWorkers}*${gpus})) --max-np $((${maxWorkers}*${gpus}))"


@pytest.mark.parametrize(
    ("command", "environment", "expected"),
    [
        pytest.param(BY_NAME, LITERAL, WHOLE, id="Kubernetes' variables"),
        pytest.param(
            BY_NAME,
            [("N", "4"), ("MAX_NP", "$(N)"), ("MIN_NP", "1"), ("NP", "2")],
            WHOLE,
            id="a variable of an earlier one",
        ),
        pytest.param(
            BY_NAME,
            [("MAX_NP", "$(N)"), ("N", "4"), ("MIN_NP", "1"), ("NP", "2")],
            launch(np=2, min_np=1, computed=frozenset({"max_np"})),
            id="a variable of a later one",
        ),
        pytest.param(
            BY_NAME,
            [("NP", "2"), ("MIN_NP", "1"), ("MAX_NP", None)],
            launch(np=2, min_np=1, computed=frozenset({"max_np"})),
            id="a variable from a ConfigMap",
        ),
        pytest.param(
            BY_NAME,
            [*LITERAL, ("MAX_NP", None)],
            launch(np=2, min_np=1, computed=frozenset({"max_np"})),
            id="the last of a name counts",
        ),
        pytest.param(BY_NAME, [], ALL_COMPUTED, id="unknown variables"),
        pytest.param(["sh", "-c", "$(RUN)"], [("RUN", LINE)], WHOLE, id="a script in a variable"),
        pytest.param(
            ["sh", "-c", "exec $(RUN)"], [("RUN", None)], None, id="a script from elsewhere"
        ),
        pytest.param(
            ["sh", "-c", LINE.replace("-np 2", "-np $$(NP)")],
            LITERAL,
            launch(min_np=1, max_np=4, computed=frozenset({"np"})),
            id="escaped",
        ),
        # A shell's own variables may be changed before.
        pytest.param(["sh", "-c", IN_SHELL], LITERAL, ALL_COMPUTED, id="a shell's variables"),
        pytest.param(
            ["sh", "-c", f"{ARENA} --host-discovery-script {SCRIPT} python t.py"],
            [],
            ALL_COMPUTED,
            id="arithmetic",
        ),
        pytest.param(
            ["sh", "-c", LINE.replace("-np 2", "-np $(wc -l < /etc/mpi/hostfile)")],
            [],
            launch(min_np=1, max_np=4, computed=frozenset({"np"})),
            id="lines of the hostfile",
        ),
        pytest.param(
            ["sh", "-c", LINE.replace("-np 2", "-np `cat '/a b' | wc -l`")],
            [],
            launch(min_np=1, max_np=4, computed=frozenset({"np"})),
            id="backticks with words",
        ),
        pytest.param(
            ["sh", "-c", f'horovodrun "${{ARGS[@]}}" {OPTIONS} python'],
            [],
            launch(np=2, min_np=1, max_np=4, unread=True),
            id="options in an array",
        ),
        pytest.param(
            ["sh", "-c", f"{STEP}; horovodrun $OPTIONS python t.py"],
            [],
            Launch(program=HOROVODRUN, unread=True),
            id="one with unknown options may be the elastic one",
        ),
        pytest.param(
            ["sh", "-c", f"{LINE}; echo 'without an end"],
            [],
            launch(np=2, min_np=1, max_np=4, unread=True),
            id="a script that cannot be read to its end",
        ),
        pytest.param(
            ["horovodrun", "--min-n", "1", *WORDS[1:]],
            [],
            launch(np=2, min_np=1, max_np=4, unread=True),
            id="an ambiguous option",
        ),
        pytest.param(
            ["horovodrun", "--of-a-later-version", "x", *WORDS[1:]],
            [],
            launch(np=2, min_np=1, max_np=4, unread=True),
            id="an unknown option",
        ),
        pytest.param(
            ["horovodrun", "--max-np", "4", "--min-np"],
            [],
            Launch(program=HOROVODRUN, max_np=4, computed=frozenset({"min_np"}), unread=True),
            id="without its value",
        ),
        pytest.param(
            ["sh", "-c", f"{STEP}; mpirun -np 2 x"],
            [],
            Launch(program=HOROVODRUN, np=1),
            id="horovodrun before mpirun",
        ),
        pytest.param(
            ["sh", "-c", "horovodrun python x; mpirun -np 2 x"],
            [],
            Launch(program="mpirun"),
            id="mpirun before a horovodrun that ends at once",
        ),
    ],
)
def test_what_is_known_only_when_it_runs_is_unknown(
    command: Sequence[str],
    environment: Sequence[tuple[str, str | None]],
    expected: Launch | None,
) -> None:
    assert launch_command.parse(command, environment) == expected


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["bash", "run.sh", *WORDS], id="a file"),
        pytest.param(["bash", "-c", "echo horovodrun -np 4 python x; bash run.sh"], id="a text"),
        pytest.param(["echo", *WORDS], id="words of another program"),
        pytest.param(["bash", "-c", "horovodrun --version; horovodrun -cb"], id="it only tells"),
        pytest.param(["bash", "-c", "command -v horovodrun"], id="whether it is there"),
        pytest.param(
            ["bash", "-c", f"cat <<EOF > run.sh\n{LINE}\nEOF\nbash run.sh"], id="a file's text"
        ),
        pytest.param(["bash", "-c", f"ARGS=({LINE})"], id="an array"),
        pytest.param(["conda", "info", *WORDS], id="another use of conda"),
        pytest.param(["python", "-c", LINE], id="a program of Python"),
        pytest.param(["python", "train.py", *WORDS], id="a script of Python"),
        pytest.param(["python", "-m", "train", *WORDS], id="a module of Python"),
        pytest.param(["sh", "-c", "case $1 in horovodrun) x;; esac"], id="a pattern"),
        pytest.param(["timeout"], id="a wrapper of nothing"),
        pytest.param(["env"] * 9 + WORDS, id="too many wrappers"),
    ],
)
def test_where_none_can_be_read_nothing_is_assumed(command: Sequence[str]) -> None:
    assert launch_command.parse(command) is None
