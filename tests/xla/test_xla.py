"""XLA: every level of the generated code is read from the dump, and the levels are connected."""

import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import needs, versions
from tflab import xla
from tflab.errors import TflabError
from tflab.xla import links, listings
from tflab.xla.listings import Instruction

HLO = """\
HloModule cluster_0, is_scheduled=true, entry_computation_layout={(f32[8]{0}, f32[])->f32[8]{0}}

%fused_computation (param_0: f32[8], param_1: f32[]) -> f32[8] {
  %param_0 = f32[8]{0} parameter(0)
  %param_1 = f32[] parameter(1)
  %half = f32[] constant(0.5), metadata={op_type="Const" op_name="elsewhere"}
  %b.0 = f32[8]{0} broadcast(%param_1), dimensions={}
  %b.1 = f32[8]{0} broadcast(%half), dimensions={}, metadata={op_type="Const" op_name="elsewhere"}
  %mul.0 = f32[8]{0} multiply(%b.0, %param_0), metadata={op_type="Mul" op_name="a/mul"}
  ROOT %sub.0 = f32[8]{0} subtract(%mul.0, %b.1), metadata={op_type="Sub" op_name="a/sub"}
}

ENTRY %main (arg0: f32[8], arg1: f32[]) -> (f32[8], f32[8]) {
  %arg0 = f32[8]{0} parameter(0), metadata={op_name="XLA_Args"}
  %arg1 = f32[] parameter(1), metadata={op_name="XLA_Args"}
  %f = f32[8]{0} fusion(%arg0, %arg1), kind=kLoop, calls=%fused_computation
  %conv.1 = f32[8]{0} convolution(%f, %arg0), metadata={op_type="Conv2D" op_name="conv"}
  ROOT %out = (f32[8]{0}, /*index=1*/f32[8]{0}) tuple(%f, %conv.1)
}
"""

LLVM = """\
define noalias noundef ptr @f(ptr readonly captures(none) %0) local_unnamed_addr #0 {
  %1 = getelementptr inbounds nuw i8, ptr %0, i64 24
  %2 = load ptr, ptr %1, align 8, !invariant.load !3
  %3 = load ptr, ptr %2, align 8, !dereferenceable !4
  %4 = getelementptr inbounds nuw i8, ptr %2, i64 16
  %5 = load ptr, ptr %4, align 8
  %6 = load float, ptr %5, align 4
  %splat = insertelement <8 x float> poison, float %6, i64 0
  %wide = shufflevector <8 x float> %splat, <8 x float> poison, <8 x i32> zeroinitializer
  %7 = load <8 x float>, ptr %3, align 4
  %8 = fmul <8 x float> %7, %wide
  %9 = fsub contract <8 x float> %8, splat (float 5.000000e-01)
  ret ptr null
}
"""


def elf(machine, code, function="f"):
    """The smallest object file: one section of code, one function in it."""
    strings, names = f"\0{function}\0".encode(), b"\0.text\0.strtab\0.symtab\0.shstrtab\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, len(code))
    parts, offset, body = [code, strings, symbols, names], 64, b""
    headers = [bytes(64)]
    for part, name, kind, link, entry in zip(
        parts, (1, 7, 15, 23), (1, 3, 2, 3), (0, 0, 2, 0), (0, 0, 24, 0), strict=True
    ):
        headers.append(
            struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, len(part), link, 1, 1, entry)
        )
        body, offset = body + part, offset + len(part)
    start = b"\x7fELF\x02\x01\x01" + bytes(9)
    start += struct.pack("<HHIQQQIHHHHHH", 1, machine, 1, 0, 0, offset, 0, 64, 0, 0, 64, 5, 4)
    return start + body + b"".join(headers)


X86_64, AARCH64, RISCV = 62, 183, 243
FMSUB = bytes.fromhex("c4e275aac2c3")  # vfmsub213ps ymm0, ymm1, ymm2; ret


def dump(folder, hlo=HLO, llvm=LLVM, data=None):
    prefix = "module_0003.cluster_0__XlaCompiledKernel_true_.7."
    (folder / f"{prefix}before_optimizations.txt").write_text(HLO)
    (folder / f"{prefix}cpu_after_optimizations.txt").write_text(hlo)
    (folder / f"{prefix}f_kernel_module.ir-with-opt.ll").write_text(llvm)
    if data is not None:
        (folder / f"{prefix}obj-file.f_kernel_module.o").write_bytes(data)
    return folder


# The parsers, on texts that fit here.


def test_hlo_becomes_operations_with_their_graph_nodes():
    hlo = listings.hlo(HLO)
    assert [op.opcode for op in hlo.entry] == [
        *("parameter", "parameter", "fusion", "convolution", "tuple")
    ]
    fusion = hlo.entry[2]
    assert (fusion.kind, fusion.calls, fusion.operands) == (
        "kLoop",
        "fused_computation",
        ("arg0", "arg1"),
    )
    product = hlo.computations[fusion.calls][-2]
    assert (product.node, product.operands) == ("a/mul", ("b.0", "param_0"))


def test_the_names_that_xla_gives_are_no_graph_nodes():
    assert [op.node for op in listings.hlo(HLO).entry] == ["", "", "", "conv", ""]


def test_llvm_instructions_know_their_lanes():
    (function,) = listings.llvm(LLVM).values()
    assert [(i.opcode, i.lanes) for i in function.body if i.lanes] == [("fmul", 8), ("fsub", 8)]
    assert function.body[-1].operands == ("%8", "splat (float 5.000000e-01)")


@pytest.mark.parametrize("literal", ["0.0625", "6.250000e-02", "0x3FB0000000000000"])
def test_hlo_and_llvm_write_the_same_float_differently(literal):
    assert links.float32_bits(literal) == struct.pack(">f", 0.0625)


def test_what_is_no_number_has_no_bits():
    assert [links.float32_bits(text) for text in ("{1, 2}", "0xzz", "", "undef")] == [None] * 4


def test_code_is_disassembled_for_the_processor_of_the_file():
    intel = listings.machine_code(elf(X86_64, FMSUB), "a.o")["f"]
    assert (intel.machine, intel.size_bytes) == ("x86-64", 6)
    assert intel.instructions[0] == Instruction(0, "c4e275aac2", "vfmsub213ps", "ymm0, ymm1, ymm2")
    arm = listings.machine_code(elf(AARCH64, bytes.fromhex("20dc226e20cc224e")), "a.o")["f"]
    assert [(arm.machine, i.mnemonic, i.operands) for i in arm.instructions] == [
        ("AArch64", "fmul", "v0.4s, v1.4s, v2.4s"),
        ("AArch64", "fmla", "v0.4s, v1.4s, v2.4s"),
    ]


def test_another_processor_is_refused_in_one_sentence():
    with pytest.raises(TflabError, match=r"a\.o is for EM_RISCV; tflab disassembles x86-64 and"):
        listings.machine_code(elf(RISCV, bytes(4)), "a.o")


@pytest.mark.slow
@given(st.binary(max_size=300), st.integers(0, 400))
def test_a_damaged_object_file_is_refused_or_read_but_never_crashes(noise, position):
    data = elf(X86_64, FMSUB)
    data = data[:position] + noise + data[position + len(noise) :]
    try:
        listings.machine_code(data, "a.o")
    except TflabError as error:
        assert "a.o" in str(error)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "kind"),
    [
        ("vmulps", "ymm0, ymm1, ymm2", ("fmul", 8)),
        ("vaddpd", "zmm0, zmm1, zmmword ptr [rax]", ("fadd", 8)),
        ("subss", "xmm0, xmm1", ("fsub", 1)),
        ("vfnmadd231ps", "xmm0, xmm1, xmm2", ("fma", 4)),
        ("fdiv", "v0.2d, v1.2d, v2.2d", ("fdiv", 2)),
        ("fmadd", "s0, s1, s2, s3", ("fma", 1)),
        ("add", "rax, rbx", None),
        ("vpaddd", "ymm0, ymm1, ymm2", None),
        ("vmovups", "ymm0, ymmword ptr [rax]", None),
    ],
)
def test_float_instructions_are_told_by_mnemonic_and_width(mnemonic, operands, kind):
    assert links.machine_kind(Instruction(0, "", mnemonic, operands)) == kind


# A whole dump, small enough to write by hand.


def test_each_operation_is_followed_to_the_instruction(tmp_path):
    (module,) = xla.read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    assert (module.number, module.name) == (3, "cluster_0")
    product, difference = links.arithmetic_links(module)
    assert (product.node, product.kernel, product.lanes, product.fused) == ("a/mul", "f", 8, True)
    assert [i.text for i in product.llvm] == ["fmul <8 x float> %7, %wide"]
    assert [i.name for i in difference.llvm] == ["%9"]
    assert (
        [i.mnemonic for i in product.code]
        == ["vfmsub213ps"]
        == [i.mnemonic for i in difference.code]
    )
    assert product.inferred == difference.inferred == (links.BY_WIDTH,)


def test_another_expression_of_the_same_kind_is_only_inferred(tmp_path):
    llvm = LLVM.replace("%7, %wide", "%7, %7")
    (module,) = xla.read(dump(tmp_path, llvm=llvm, data=elf(X86_64, FMSUB)))
    assert [link.inferred for link in links.arithmetic_links(module)] == [
        (links.BY_KIND, links.BY_WIDTH)
    ] * 2


def owners(link):
    return [[op.name for op in of] for of in (link.llvm_owners, link.code_owners)]


def test_an_operation_owns_its_expression_alone_and_a_fused_instruction_with_the_other(tmp_path):
    (module,) = xla.read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    product, difference = links.arithmetic_links(module)
    assert owners(product) == [["mul.0"], ["mul.0", "sub.0"]]
    assert owners(difference) == [["sub.0"], ["mul.0", "sub.0"]]


EXPONENTIAL = "  %exp.0 = f32[8]{0} exponential(%b.0)\n"


def test_instructions_that_an_exponential_may_have_made_are_not_one_operations(tmp_path):
    hlo = HLO.replace("  ROOT %sub.0", EXPONENTIAL + "  ROOT %sub.0")
    llvm = LLVM.replace("%7, %wide", "%7, %7")  # of another form than the product
    (module,) = xla.read(dump(tmp_path, hlo=hlo, llvm=llvm, data=elf(X86_64, FMSUB)))
    every = [["mul.0", "exp.0", "sub.0"]] * 2
    assert [owners(link) for link in links.arithmetic_links(module)] == [every, every]


def test_an_exponential_owns_none_of_the_instructions_that_are_anothers_expression(tmp_path):
    hlo = HLO.replace("  ROOT %sub.0", EXPONENTIAL + "  ROOT %sub.0")
    llvm = LLVM.replace("  ret ptr", "  %10 = fmul <4 x float> %7, %7\n  ret ptr")
    (module,) = xla.read(dump(tmp_path, hlo=hlo, llvm=llvm, data=elf(X86_64, FMSUB)))
    product, _ = links.arithmetic_links(module)
    assert owners(product) == [["mul.0"], ["mul.0", "sub.0"]]  # those of four lanes are others
    llvm = llvm.replace("<4 x float> %7, %7", "<8 x float> %7, %7")
    module = replace(module, kernels=tuple(kernels_with(module, llvm)))
    product, _ = links.arithmetic_links(module)
    assert owners(product) == [["mul.0"], ["mul.0", "sub.0"]]  # %8 is fused, this one is not


def kernels_with(module, llvm):
    for kernel in module.kernels:
        yield replace(kernel, llvm=listings.llvm(llvm).get(kernel.function))


def test_moves_and_comparisons_make_no_arithmetic(tmp_path):
    more = "  %max.0 = f32[8]{0} maximum(%b.0, %b.1)\n"
    hlo = HLO.replace("  ROOT %sub.0", more + "  ROOT %sub.0")
    llvm = LLVM.replace("%7, %wide", "%7, %7")
    (module,) = xla.read(dump(tmp_path, hlo=hlo, llvm=llvm, data=elf(X86_64, FMSUB)))
    assert owners(links.arithmetic_links(module)[0]) == [["mul.0", "sub.0"]] * 2


def test_an_operation_without_instructions_says_so(tmp_path):
    llvm = "\n".join(line for line in LLVM.splitlines() if "fsub" not in line)
    (module,) = xla.read(dump(tmp_path, llvm=llvm, data=elf(X86_64, FMSUB)))
    difference = links.arithmetic_links(module)[1]
    assert (difference.llvm, difference.code, difference.inferred) == ((), (), (links.GONE,))


def test_a_constant_does_not_lend_its_node_to_the_fusions_that_share_it(tmp_path):
    (module,) = xla.read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    assert [kernel.nodes for kernel in module.kernels] == [("a/mul", "a/sub"), ("conv",)]


def test_a_convolution_is_listed_without_code(tmp_path):
    (module,) = xla.read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    assert [(k.name, k.opcodes[-1], k.function) for k in module.kernels] == [
        ("f", "subtract", "f"),
        ("conv.1", "convolution", ""),
    ]


def test_equal_fusions_share_one_function(tmp_path):
    second = HLO[HLO.index("%fused") : HLO.index("ENTRY")].replace("%fused_comp", "%other_comp")
    second = second.replace("a/", "b/").replace("%mul.0", "%mul.5")
    line = "  %g = f32[8]{0} fusion(%f, %arg1), kind=kLoop, calls=%other_computation\n"
    hlo = HLO.replace("ENTRY", second + "ENTRY").replace("  %conv.1", line + "  %conv.1")
    (module,) = xla.read(dump(tmp_path, hlo=hlo, data=elf(X86_64, FMSUB)))
    assert [(k.name, k.function) for k in module.kernels][:2] == [("f", "f"), ("g", "f")]
    of_g = [link for link in links.arithmetic_links(module) if link.kernel == "g"]
    assert [(link.node, link.inferred[0]) for link in of_g] == [
        ("b/mul", links.SHARED),
        ("b/sub", links.SHARED),
    ]
    hlo = hlo.replace("subtract(%mul.5, %b.1)", "subtract(%b.1, %mul.5)")
    (module,) = xla.read(dump(tmp_path, hlo=hlo, data=elf(X86_64, FMSUB)))
    assert [k.function for k in module.kernels] == ["f", "", ""]


def test_listings_get_names_that_stay_in_their_folder(tmp_path):
    (module,) = xla.read(dump(tmp_path, data=elf(X86_64, FMSUB)))
    files = xla.listing_files(module)
    assert list(files) == ["hlo-before.txt", "hlo-after.txt", "000-f.ll", "000-f.s"]
    assert files["000-f.s"].splitlines()[0].split() == [
        *("0", "c4e275aac2", "vfmsub213ps", "ymm0,", "ymm1,", "ymm2")
    ]
    hlo, llvm = HLO.replace("%f =", "%.. ="), LLVM.replace("@f", "@..")
    (module,) = xla.read(dump(tmp_path, hlo=hlo, llvm=llvm, data=elf(X86_64, FMSUB, "..")))
    assert list(xla.listing_files(module))[2:] == ["000-__.ll", "000-__.s"]


def test_an_empty_dump_says_that_nothing_was_compiled(tmp_path):
    with pytest.raises(TflabError, match="XLA compiled nothing"):
        xla.read(tmp_path)
    with pytest.raises(TflabError, match="XLA compiled nothing"):
        xla.read(tmp_path / "missing")


def test_a_dump_of_another_version_is_refused(tmp_path):
    with pytest.raises(TflabError, match="no machine code for"):
        xla.read(dump(tmp_path))
    with pytest.raises(TflabError, match="without an entry"):
        xla.read(dump(tmp_path, hlo="module @stablehlo {}"))
    next(tmp_path.glob("*cpu_after*")).unlink()
    with pytest.raises(TflabError, match=r"no module_0003\..*cpu_after_optimizations"):
        xla.read(tmp_path)


def test_a_folder_that_xla_cannot_be_told_is_refused():
    with pytest.raises(TflabError, match="quotation mark"):
        xla.environment('a"b')


def test_reading_a_dump_does_not_import_tensorflow():
    code = "import sys, tflab.xla; assert not {'tensorflow', 'capstone'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# The real thing: `x * y + z` of the toy, compiled by the TensorFlow that is installed.

ROWS = 1024  # enough for a loop; up to 48 rows LLVM unrolls it all and uses no vectors
START = """
from tflab.runtime import quiet_import
quiet_import.load()
import sys, numpy as np, tensorflow as tf, tensorflow.compat.v1 as tf1
from tflab import models
from tflab.lifecycle import backward, frontend, gradient_check, placement
from tflab.runtime import session
from tflab.records import Options
gradient_check.ELEMENTS = 1  # each costs two runs of the loss

def run(stage, step, values):
    config = tf1.ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = tf1.OptimizerOptions.ON_2
    with tf1.Session(graph=stage.program.graph, config=config) as live:
        live.run([v.initializer for v in stage.program.graph.get_collection("variables")])
        step.callable(live)(*values)

model = sys.argv[1]
stage = frontend.build((model, models.find(model)), Options())
"""
TOY = f"""
step = session.Step(feeds=("x:0",), fetches=("add:0",), targets=())
run(stage, step, [np.ones({ROWS}, np.float32)])

@tf.function(jit_compile=True)
def formula(x, y, z):
    return x * y + z

arguments = [tf.constant(1.0, shape=shape) for shape in ([{ROWS}], [], [])]
print(formula.experimental_get_compiler_ir(*arguments)(stage="optimized_hlo"))
"""
TRAINING = """
stage = backward.differentiate(stage, Options())
step = session.step_of(stage.program, placement.default_fetches(stage.program))
run(stage, step, next(session.feed_batches(stage.program, 16)))
"""


def compiled(program, model, folder):
    """What the program printed, and the one cluster that was compiled for its session."""
    output = subprocess.run(
        [sys.executable, "-c", START + program, model],
        env={**os.environ, **xla.environment(folder)},
        cwd=Path(__file__).parents[2],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=120,
    ).stdout
    (module,) = (module for module in xla.read(folder) if module.name.startswith("cluster"))
    return module, output


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """The dump of the toy's formula, with a space in its path, and TensorFlow's own HLO of it."""
    folder = tmp_path_factory.mktemp("a dump")
    return folder, *compiled(TOY, "toy", folder)


@pytest.mark.tensorflow
def test_the_multiply_and_the_add_of_the_toy_are_found_at_every_level(toy):
    _, module, _ = toy
    path = links.arithmetic_links(module)
    assert [(link.node, link.operation.opcode) for link in path] == [
        ("mul", "multiply"),
        ("add", "add"),
    ]
    for link, opcode in zip(path, ("fmul", "fadd"), strict=True):
        assert {i.opcode for i in link.llvm} == {opcode}
        assert link.lanes > 1
        assert links.BY_KIND not in link.inferred  # it is the same expression
        kind = "fma" if link.fused else opcode
        assert {links.machine_kind(i) for i in link.code} == {(kind, link.lanes)}
        assert len(link.code) == len(link.llvm)  # none is left over on either side


@pytest.mark.tensorflow
def test_hlo_has_the_operations_that_tensorflow_shows_by_itself(toy):
    _, module, independent = toy
    assert sorted(all_opcodes(module.hlo_after)) == sorted(all_opcodes(independent))


def all_opcodes(text):
    computations = listings.hlo(text).computations.values()
    return [op.opcode for operations in computations for op in operations]


@pytest.mark.tensorflow
@needs.OBJDUMP
def test_instructions_are_those_of_objdump(toy):
    folder, module, _ = toy
    (kernel,) = module.kernels
    (file,) = folder.glob("module_*.cluster_*.o")
    command = ["objdump", "--disassemble", "--insn-width=16", "-M", "intel", str(file)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    columns = [line.split("\t") for line in lines if line.count("\t") == 2]
    ours = [(i.address, i.bytes) for i in kernel.code.instructions]
    assert ours == [(int(a.strip(" :"), 16), raw.replace(" ", "")) for a, raw, _ in columns]
    for instruction, (_, _, text) in zip(kernel.code.instructions, columns, strict=True):
        if instruction.mnemonic.startswith("v"):
            assert instruction.mnemonic == text.split()[0]


@versions.before(2, 20, "a function for each fusion of the toy; before, some share one")
@pytest.mark.tensorflow
def test_fusions_without_a_function_of_their_own_have_no_code_and_the_others_have(tmp_path):
    module, _ = compiled(TRAINING, "toy", tmp_path)
    fusions = [kernel for kernel in module.kernels if kernel.opcode == "fusion"]
    # Which one has the function differs from time to time.
    assert sorted(bool(kernel.code) for kernel in fusions) == [False, False, True]
    assert links.arithmetic_links(module) == ()


@versions.since(2, 21, "a function for each fusion; before, some share one")
@pytest.mark.tensorflow
def test_a_training_step_of_lenet_is_one_cluster_with_its_convolutions(tmp_path):
    module, _ = compiled(TRAINING, "lenet", tmp_path)
    assert {k.opcode for k in module.kernels if not k.code and k.kind != "kCustom"} == {
        *("convolution", "dot")
    }
    assert all(kernel.llvm for kernel in module.kernels if kernel.kind == "kLoop")
    nodes = {node for kernel in module.kernels for node in kernel.nodes}
    assert {"conv1/Conv2D", "conv1/Relu", "pool2/MaxPool", "dense3/MatMul"} <= nodes
    assert "dense2/BiasAdd" in {
        link.node for link in links.arithmetic_links(module) if link.lanes > 1
    }
    assert len(xla.listing_files(module)) > 50
