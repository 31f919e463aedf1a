# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on machines against closed forms, conservation, monotony and determinism.

The machine has round numbers; what a test is about, it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("hyperparallel._hyperparallel", reason="the compiled parts are not built")

from hypothesis import given, settings
from hypothesis import strategies as st
from mlir import ir

from hyperparallel import dialects
from hyperparallel.machines import Algorithm, DeviceGroup, Level, Link, Machine, Segment, Tier
from hyperparallel.simulator import SimulationError, StreamKind, Timeline, simulate_program

MACHINE = Machine(
    name="round",
    groups=(DeviceGroup("npu", 64, "hbm", launch=1e-6, vector=1e12, rates={"f32": 1e13}),),
    levels=(
        Level("node", 16, latency=2e-6, bandwidth=1e11, algorithms=(Algorithm.RING,)),
        Level("row", 4, latency=5e-6, bandwidth=5e10, algorithms=(Algorithm.RING,)),
    ),
    tiers=(Tier("hbm", "device", 1e10, 1e12), Tier("pool", "node", 1e12, 1e12), Tier("disk", "row", 1e13, 1e9)),
    segments=(Segment("host", "node", 3.2e11),),
    links=(
        Link("pool", "hbm", 2e-6, 1e11, ("host",)),
        Link("hbm", "pool", 1e-6, 5e10, ("host",)),
        Link("disk", "pool", 1e-4, 1e9),
    ),
)
MB = 1_000_000


@pytest.fixture(scope="module")
def context() -> ir.Context:
    context = ir.Context()
    dialects.register(context)
    return context


@pytest.fixture(autouse=True)
def entered(context: ir.Context) -> Iterator[None]:
    with context:
        yield


def run(text: str, machine: Machine = MACHINE) -> Timeline:
    return simulate_program(ir.Module.parse(text), machine=machine)


def tensor(size: int) -> str:
    return f"tensor<{size}xi8>"


def approx(seconds: float) -> object:
    return pytest.approx(seconds, rel=1e-12)


# Closed forms ---------------------------------------------------------------------------------------------------------


def test_one_kernel() -> None:
    t = "tensor<1000x1000xf32>"
    product = f"""func.func @main(%a: {t}, %b: {t}, %c: {t}) -> {t} {{
      %0 = linalg.matmul ins(%a, %b : {t}, {t}) outs(%c : {t}) -> {t}
      return %0 : {t}
    }}"""
    bound_by_operations = run(product)
    assert bound_by_operations.seconds == approx(1e-6 + 2e9 / 1e13)
    assert bound_by_operations.tasks[0].bound == "compute"
    assert bound_by_operations.mfu == approx(2e-4 / 2.01e-4)
    group = replace(MACHINE.groups[0], rates={"f32": 1e18})
    bound_by_memory = run(product, replace(MACHINE, groups=(group,)))
    (task,) = bound_by_memory.tasks
    assert task.bytes is not None
    assert bound_by_memory.seconds == approx(1e-6 + task.bytes / 1e12)
    assert task.bound == "memory"


def test_a_task_takes_what_it_says() -> None:
    result = run('func.func @main() { supernode.task "a" {seconds = 0.123456789, flops = 5.0, bytes = 7.0e3} return }')
    assert result.seconds == 0.123456789
    assert (result.tasks[0].op, result.tasks[0].flops) == ("a", 5.0)


@pytest.mark.parametrize("ranks", [2, 3, 16])
def test_ring_all_reduce(ranks: int) -> None:
    count = 48_000
    t = f"tensor<{count}xf32>"
    result = run(f"""hypershard.mesh @m = <["x"={ranks}]>
      func.func @main(%a: {t}) -> {t} {{
        %0 = hypershard.all_reduce %a over @m {{"x"}} <sum> : {t} -> {t}
        return %0 : {t}
      }}""")
    size = 4 * count
    assert result.seconds == approx(1e-6 + 2 * (ranks - 1) * (2e-6 + size / ranks / 1e11))
    assert result.exposed.communication == approx(result.seconds)
    assert result.collectives[0].bytes_received == 2 * (ranks - 1) * size / ranks


def copies(count: int, size: int) -> str:
    """Copies one after the other in the program, and then a task that needs them all."""
    t = tensor(size)
    loads = "\n".join(f'%{i} = supernode.copy %w from "pool" to "hbm" : {t}' for i in range(count))
    names = ", ".join(f"%{i}" for i in range(count))
    return f"""{loads}
      supernode.task "use" ins({names} : {", ".join([t] * count)}) {{seconds = 1.0e-3}}
      return"""


def test_two_transfers_on_one_link() -> None:
    t = tensor(100 * MB)
    result = run(f'func.func @main(%w: {t} {{supernode.tier = "pool"}}) {{ {copies(2, 100 * MB)} }}')
    # With no op between them they are submitted together, and share a latency.
    both = 2e-6 + 2 * 1e8 / 1e11
    assert result.first_step_seconds == approx(both + 1e-3)
    # Nothing of the next step can be begun before, so that the second step is as the first.
    assert result.seconds == approx(both + 1e-3)
    assert result.exposed.transfer == approx(both)


@pytest.mark.parametrize("dies", [1, 2, 4, 16, 64])
def test_dies_contend_for_the_memory_of_their_node(dies: int) -> None:
    t = tensor(100 * MB)
    result = run(f"""hypershard.mesh @m = <["x"={dies}]>
      func.func @main(%w: {t} {{supernode.tier = "pool"}}) {{ {copies(1, 100 * MB)} }}""")
    in_node = min(dies, 16)
    assert result.first_step_seconds == approx(2e-6 + 1e8 / min(1e11, 3.2e11 / in_node) + 1e-3)
    host = next(use for use in result.links if use.name == "host")
    assert host.bytes == approx(in_node * 1e8)


def test_groups_contend_for_the_memory_of_their_node() -> None:
    t = tensor(100 * MB)

    def seconds(*ranges: tuple[int, int]) -> float | None:
        programs = (
            f"""func.func @p{first}(%w: {t} {{supernode.tier = "pool"}}) attributes {{
              supernode.program = "p{first}", supernode.devices = [{first}, {count}]}} {{ {copies(1, 100 * MB)} }}"""
            for first, count in ranges
        )
        return run("\n".join(programs)).first_step_seconds

    def of(dies: int) -> object:
        return approx(2e-6 + 1e8 / (3.2e11 / dies) + 1e-3)

    # Those of one node, whoever's they are; another node has its own.
    assert seconds((0, 8)) == of(8)
    assert seconds((0, 4), (4, 4)) == of(8)
    assert seconds((0, 4), (4, 4), (16, 8)) == of(8)
    assert seconds((0, 4), (8, 6), (14, 2)) == of(12)
    # Twelve of the second group are in the first node.
    assert seconds((0, 4), (4, 24)) == of(16)


def test_kernels_and_copies_share_the_memory() -> None:
    # The kernel alone takes all of the bandwidth for 1 ms; a copy at 1e11 leaves it nine tenths.
    t = tensor(10 * MB)
    body = f"""func.func @main(%w: {t} {{supernode.tier = "pool"}}) {{
      %0 = supernode.copy %w from "pool" to "hbm" : {t}
      supernode.task "kernel" {{seconds = 1.0e-3, bytes = 1.0e9}}
      supernode.task "use" ins(%0 : {t}) {{seconds = 0.0}}
      return
    }}"""
    result = run(body)
    kernel = next(task for task in result.tasks if task.op == "kernel")
    load = 1e7 / 1e11
    # The copy is under way for `load` from 2 us on; what the kernel misses then, it does afterwards.
    assert kernel.end - kernel.start == approx(1e-3 + load / 10)
    idle = run(body.replace("bytes = 1.0e9", "bytes = 9.0e8"))
    kernel = next(task for task in idle.tasks if task.op == "kernel")
    assert kernel.end - kernel.start == approx(1e-3)


def pipeline(stages: int, batches: int, size: int = 1) -> str:
    """Forward, then backward: 1 ms and 2 ms a stage; each stage is a group."""
    t = tensor(size)
    functions: list[str] = []
    for stage in range(stages):
        lines: list[str] = []

        def step(kind: str, way: int, batch: int, seconds: str, stage: int = stage, lines: list[str] = lines) -> None:
            before, after = stage - way, stage + way
            tag = batch if kind == "f" else batches + batch
            ins = ""
            if 0 <= before < stages:
                lines.append(f'%i{kind}{batch} = supernode.recv from "s{before}" tag {tag} : {t}')
                ins = f" ins(%i{kind}{batch} : {t})"
            lines.append(f"%e{kind}{batch} = tensor.empty() : {t}")
            lines.append(
                f'%o{kind}{batch} = supernode.task "{kind}"{ins} outs(%e{kind}{batch} : {t}) {{seconds = {seconds}}}'
            )
            if 0 <= after < stages:
                lines.append(f'supernode.send %o{kind}{batch} to "s{after}" tag {tag} : {t}')

        for batch in range(batches):
            step("f", 1, batch, "1.0e-3")
        for batch in reversed(range(batches)):
            step("b", -1, batch, "2.0e-3")
        functions.append(
            f'func.func @s{stage}() attributes {{supernode.program = "s{stage}", '
            f"supernode.devices = [{stage}, 1]}} {{\n" + "\n".join(lines) + "\nreturn\n}"
        )
    return "\n".join(functions)


@pytest.mark.parametrize(("stages", "batches"), [(1, 1), (2, 3), (4, 8), (16, 16)])
def test_pipeline_fills_and_drains(stages: int, batches: int) -> None:
    # A network that takes no time, so that the closed form holds to the last bit but one.
    fast = tuple(replace(level, latency=0.0, bandwidth=1e30) for level in MACHINE.levels)
    machine = replace(MACHINE, levels=fast, tiers=(replace(MACHINE.tiers[0], bandwidth=1e30), *MACHINE.tiers[1:]))
    result = run(pipeline(stages, batches), machine)
    assert result.first_step_seconds == approx((batches + stages - 1) * 3e-3)
    for group in result.groups:
        assert group.streams[0].busy == approx(batches * 3e-3)
    assert result.devices == stages


def test_a_pipeline_pays_for_its_transfers() -> None:
    size = 10 * MB
    result = run(pipeline(2, 1, size))
    transfer = 2e-6 + size / 1e11
    assert result.first_step_seconds == approx(1e-3 + transfer + 3e-3 + transfer + 2e-3)
    # The second stage: nothing runs there while the first does.
    second = result.groups[1]
    assert second.exposed.communication == approx(2 * transfer)
    assert second.exposed.bubble == approx(3e-3)


def test_a_send_waits_for_its_receive() -> None:
    t = tensor(100)
    result = run(f"""
      func.func @a(%x: {t}) attributes {{supernode.program = "a", supernode.devices = [0, 1]}} {{
        supernode.send %x to "b" tag 0 : {t}
        return
      }}
      func.func @b() attributes {{supernode.program = "b", supernode.devices = [16, 1]}} {{
        supernode.task "late" {{seconds = 1.0e-3}}
        %0 = supernode.recv from "a" tag 0 : {t}
        return
      }}""")
    send, receive = (next(task for task in result.tasks if task.op == f"supernode.{op}") for op in ("send", "recv"))
    # Two nodes: the outer level.
    transfer = 5e-6 + 100 / 5e10
    assert result.first_step_seconds == approx(1e-3 + transfer)
    assert (send.start, send.end) == (receive.start, receive.end)
    assert send.end - send.start == pytest.approx(transfer, rel=1e-9)
    # The next task runs beside the transfer, so that a step takes what the task does.
    assert result.seconds == approx(1e-3)


# A step that wraps around ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_place", [False, True])
def test_the_second_step_is_reported(in_place: bool) -> None:
    # The updated weight is stored at the end of the step.
    t = tensor(100 * MB)
    operands = f"outs(%x : {t})" if in_place else f"ins(%x : {t}) outs(%e : {t})"
    result = run(f"""func.func @main(%x: {t} {{hp.name = "x", hp.role = "buffer"}}) -> ({t} {{hp.name = "x"}}) {{
      %e = tensor.empty() : {t}
      %y = supernode.task "step" {operands} {{seconds = 1.0e-2}}
      %p = supernode.copy %y from "hbm" to "pool" : {t}
      return %y : {t}
    }}""")
    store = 1e-6 + 1e8 / 5e10
    assert result.first_step_seconds == approx(1e-2 + store)
    # The next step hides the store, unless it writes over what is being stored.
    assert result.seconds == approx(1e-2 + store if in_place else 1e-2)
    assert result.exposed.transfer == pytest.approx(store if in_place else 0.0)
    assert result.tiers[0].peak == (100 if in_place else 200) * MB


def test_state_takes_the_place_of_the_argument() -> None:
    # The weight lives in the pool between steps; the new one replaces the old one, so that nothing piles up.
    t = tensor(100 * MB)
    result = run(f"""func.func @main(%w: {t} {{hp.name = "w", hp.role = "parameter", supernode.tier = "pool"}})
        -> ({t} {{hp.name = "w"}}) {{
      %0 = supernode.copy %w from "pool" to "hbm" : {t}
      %1 = supernode.task "update" outs(%0 : {t}) {{seconds = 1.0e-3}}
      %2 = supernode.copy %1 from "hbm" to "pool" : {t}
      return %2 : {t}
    }}""")
    hbm, pool = result.tiers
    load, store = 2e-6 + 1e8 / 1e11, 1e-6 + 1e8 / 5e10
    assert result.seconds == approx(load + 1e-3 + store)
    assert hbm.peak == 100 * MB
    # The old one goes when it is loaded, before the new one is stored.
    assert pool.peak == 100 * MB
    assert pool.timeline[-1][1] == 100 * MB


def test_outputs_do_not_pile_up() -> None:
    t = tensor(100)
    result = run(f"""func.func @main(%w: {t} {{supernode.tier = "pool"}}) -> {t} {{
      %0 = supernode.copy %w from "pool" to "hbm" : {t}
      %e = tensor.empty() : {t}
      %1 = supernode.task "f" ins(%0 : {t}) outs(%e : {t}) {{seconds = 1.0e-3}}
      return %1 : {t}
    }}""")
    assert result.tiers[0].peak == 200
    assert result.tiers[0].timeline[-1][1] <= 200


# Conservation, monotony, determinism ----------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Weights that are loaded ahead of, or at, the tasks that use them, and results that are stored."""
    t = tensor(draw(st.sampled_from([1, 1000, 5 * MB])))
    count = draw(st.integers(1, 6))
    lines: list[str] = []
    loaded = 0
    for index in range(count):
        ahead = draw(st.integers(index + 1, count))
        while loaded < ahead:
            lines.append(f'%w{loaded} = supernode.copy %p from "pool" to "hbm" : {t}')
            loaded += 1
        seconds = draw(st.sampled_from([0.0, 2e-6, 1e-4]))
        traffic = draw(st.sampled_from([0.0, 0.5, 0.8])) * seconds * 1e12
        lines.append(f"%e{index} = tensor.empty() : {t}")
        lines.append(
            f'%t{index} = supernode.task "t" ins(%w{index} : {t}) outs(%e{index} : {t}) '
            f"{{seconds = {seconds:.9e}, bytes = {traffic:.9e}}}"
        )
        if draw(st.booleans()):
            lines.append(f'%s{index} = supernode.copy %t{index} from "hbm" to "pool" : {t}')
    body = "\n".join(lines)
    devices = draw(st.sampled_from([1, 4, 64]))
    return f"""hypershard.mesh @m = <["x"={devices}]>
      func.func @main(%p: {t} {{supernode.tier = "pool"}}) {{ {body}
        return }}"""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(programs())
def test_conservation(program: str) -> None:
    result = run(program)
    assert result.to_json_text() == run(program).to_json_text()
    slack = 1 + 1e-9
    for group in result.groups:
        for stream in group.streams:
            assert stream.busy <= result.seconds * slack
        parts = (group.exposed.communication, group.exposed.transfer, group.exposed.bubble)
        exposed = sum(part or 0.0 for part in parts)
        assert group.streams[0].busy + exposed == pytest.approx(result.seconds, rel=1e-9, abs=1e-15)
    # In a steady state no link carries more than it can; that two steps agree to a thousandth is taken for one.
    for link in result.links:
        assert link.utilisation is not None
        assert link.utilisation <= 1.002
    # What goes through a link is what its tasks move.
    moved = {use.name: use.bytes for use in result.links if str(use.kind) == "link"}
    assert set(moved) <= {"pool -> hbm", "hbm -> pool"}
    t = int(program.partition("tensor<")[2].partition("x")[0])
    assert moved["pool -> hbm"] == pytest.approx(program.count('from "pool"') * t)
    assert moved.get("hbm -> pool", 0.0) == pytest.approx(program.count('to "pool"') * t)
    # What a step takes from memory it gives back: each begins as it ends.
    for tier in result.tiers[:1]:
        assert tier.timeline[0][1] <= tier.peak


def changed(machine: Machine, what: str, factor: float) -> Machine:
    """The machine with one of its numbers times a factor."""
    kind, _, index = what.partition(".")
    number, _, key = index.partition(".")
    parts = list(getattr(machine, kind))
    part = parts[int(number)]
    parts[int(number)] = replace(part, **{key: getattr(part, key) * factor})
    return replace(machine, **{kind: tuple(parts)})


NUMBERS = [
    "links.0.latency",
    "links.0.bandwidth",
    "links.1.latency",
    "links.1.bandwidth",
    "segments.0.bandwidth",
    "tiers.0.bandwidth",
    "tiers.1.bandwidth",
    "levels.0.bandwidth",
    "levels.0.latency",
    "levels.1.latency",
    "levels.1.bandwidth",
]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.one_of(programs(), st.builds(pipeline, st.integers(2, 4), st.integers(1, 4), st.sampled_from([1, 5 * MB]))),
    st.sampled_from(NUMBERS),
    st.sampled_from([2.0, 10.0]),
)
def test_monotone_in_every_bandwidth_and_latency(program: str, number: str, factor: float) -> None:
    # What copies of several devices and directions share is wide: one that comes sooner would be in the other's way.
    hbm, pool, disk = MACHINE.tiers
    machine = replace(
        MACHINE,
        segments=(replace(MACHINE.segments[0], bandwidth=1e15),),
        tiers=(hbm, replace(pool, bandwidth=1e15), disk),
    )
    usual, other = run(program, machine), run(program, changed(machine, number, factor))
    assert usual.first_step_seconds is not None
    assert other.first_step_seconds is not None
    # The device's memory is shared with kernels all the same: a copy that runs beside another kernel than before takes
    # its bytes' time there from it.
    slack = sum(task.bytes for task in other.tasks if task.op == "supernode.copy") / hbm.bandwidth
    if number.endswith("latency"):
        assert other.first_step_seconds >= usual.first_step_seconds * (1 - 1e-9) - slack
    else:
        assert other.first_step_seconds <= usual.first_step_seconds * (1 + 1e-9) + slack


# What cannot be simulated ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            'func.func @main(%w: tensor<4xi8> {supernode.tier = "tape"}) { return }',
            'expected a tier of the machine round but got "tape".*it has hbm, pool, disk',
        ),
        (
            'func.func @main(%w: tensor<4xi8>) { %0 = supernode.copy %w from "hbm" to "disk" : tensor<4xi8> return }',
            'expected a link that the machine round has but got "hbm" -> "disk"',
        ),
        (
            'func.func @main(%w: tensor<4xi8>) { %0 = supernode.copy %w from "pool" to "hbm" : tensor<4xi8> return }',
            'expected its operand to be in "pool" but it is in "hbm"',
        ),
        (
            """func.func @main(%w: tensor<4xi8> {supernode.tier = "pool"}) {
              supernode.task "a" ins(%w : tensor<4xi8>) {seconds = 1.0} return }""",
            'expected its operands to be in "hbm" but one is in "pool"; copy it first',
        ),
        (
            """func.func @main(%w: tensor<4xi8> {hp.name = "w"}) -> (tensor<4xi8> {hp.name = "w"}) {
              %0 = supernode.copy %w from "hbm" to "pool" : tensor<4xi8> return %0 : tensor<4xi8> }""",
            'expected result "w" to end in "hbm", where the argument of that name begins, but got "pool"',
        ),
        (
            'hypershard.mesh @m = <["x"=128]> func.func @main() { return }',
            "expected at most the 64 devices that the machine round has but the program's mesh uses 128.*round@128",
        ),
        (
            'func.func @a() attributes {supernode.program = "a", supernode.devices = [60, 5]} { return }',
            "expected at most the 64 devices that the machine round has but a uses 65",
        ),
        (
            """func.func @a() attributes {supernode.program = "a", supernode.devices = [0, 1]} { return }
            func.func @b() attributes {supernode.program = "a", supernode.devices = [1, 1]} { return }""",
            'expected the name of one program but "a" is that of another, too',
        ),
        (
            """func.func @a(%x: tensor<4xi8>) attributes {supernode.program = "a", supernode.devices = [0, 1]} {
              supernode.send %x to "b" tag 3 : tensor<4xi8> return }""",
            'expected a receive with tag 3 in the program "b" to meet this send',
        ),
        (
            """func.func @b() attributes {supernode.program = "b", supernode.devices = [0, 1]} {
              %0 = supernode.recv from "a" tag 3 : tensor<4xi8> return }""",
            'expected a send with tag 3 in the program "a" to meet this receive',
        ),
        (
            """func.func @a(%x: tensor<4xi8>) attributes {supernode.program = "a", supernode.devices = [0, 1]} {
              supernode.send %x to "b" tag 3 : tensor<4xi8> return }
            func.func @b() attributes {supernode.program = "b", supernode.devices = [1, 1]} {
              %0 = supernode.recv from "a" tag 3 : tensor<8xi8> return }""",
            "expected the receive to be of the 4 bytes that are sent but got 8",
        ),
        (
            """func.func @a(%x: tensor<4xi8>) attributes {supernode.program = "a", supernode.devices = [0, 1]} {
              supernode.send %x to "b" tag 0 : tensor<4xi8>
              supernode.send %x to "b" tag 1 : tensor<4xi8> return }
            func.func @b() attributes {supernode.program = "b", supernode.devices = [1, 1]} {
              %0 = supernode.recv from "a" tag 1 : tensor<4xi8>
              %1 = supernode.recv from "a" tag 0 : tensor<4xi8> return }""",
            "expected programs that can end but this waits for ever.*`supernode.send` waits for `supernode.recv`",
        ),
    ],
)
def test_what_cannot_be_simulated(program: str, message: str) -> None:
    with pytest.raises(SimulationError, match=f"(?s){message}"):
        run(program)


def test_streams_say_what_they_do() -> None:
    t = tensor(4)
    result = run(f"""func.func @main(%d: {t} {{supernode.tier = "disk"}}) {{
      %0 = supernode.copy %d from "disk" to "pool" : {t}
      %1 = supernode.copy %0 from "pool" to "hbm" : {t}
      %2 = supernode.copy %1 from "hbm" to "pool" : {t}
      return
    }}""")
    assert [(stream.name, stream.kind) for stream in result.groups[0].streams] == [
        ("compute", StreamKind.COMPUTE),
        ("communication", StreamKind.COMMUNICATION),
        ("disk -> pool", StreamKind.H2D),
        ("pool -> hbm", StreamKind.H2D),
        ("hbm -> pool", StreamKind.D2H),
    ]
    # A tier that several devices share is shown as one device's part of it; here one device has all.
    assert [tier.capacity for tier in result.tiers] == [1e10, 1e13, 1e12]
