"""Vector code of transcendental functions: error bounds, edges, and lanes."""

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest
import scipy.special

from namoo.engines.native.ir.function import Function
from namoo.engines.native.ir.math.functions import FUNCTIONS
from namoo.engines.native.kernels.threefry import threefry2x32
from namoo.primitives import elementwise
from namoo.primitives.random import generators
from namoo.primitives.special import functions

TYPES = {"f32": np.float32, "f64": np.float64}
LANES = {"f32": 16, "f64": 8}
BINARY = ("atan2", "hypot", "pow")
POWERS = (-3, -1, 0, 1, 2, 3, 7, 16)

# Greatest errors in units of the last place, in f32 and in f64, and the function that is exact
# when it is given a wider type.  The docstrings of the functions state the same.
BOUNDS = {
    "exp": (1.5, 1.5, np.exp),
    "exp2": (1.5, 1.5, np.exp2),
    "expm1": (2, 2, np.expm1),
    "log": (1, 1, np.log),
    "log2": (1.5, 1.5, np.log2),
    "log1p": (1.5, 1.5, np.log1p),
    "logistic": (2, 2, lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-abs(x)))),
    "tanh": (2, 2, np.tanh),
    "sinh": (2, 2, np.sinh),
    "cosh": (2, 2, np.cosh),
    "asinh": (1, 2, np.arcsinh),
    "acosh": (1, 3, np.arccosh),
    "atanh": (1, 2, np.arctanh),
    "rsqrt": (1.5, 1.5, lambda x: 1 / np.sqrt(x)),
    "cbrt": (1, 1, np.cbrt),
    "sin": (2, 2, np.sin),
    "cos": (2, 2, np.cos),
    "tan": (1, 3, np.tan),
    "asin": (1.5, 1.5, np.arcsin),
    "acos": (2, 2, np.arccos),
    "atan": (2, 2, np.arctan),
    "erf": (1.5, None, scipy.special.erf),
    "erfc": (1, None, scipy.special.erfc),
    "atan2": (2, 2, np.arctan2),
    "hypot": (1.5, 1.5, np.hypot),
    "pow": (1, 1.5, np.power),
    "lgamma": (2, None, functions.lgamma_p.evaluate),
    "digamma": (2, None, functions.digamma_p.evaluate),
}

# Where SciPy knows no wider type, and for angles of which few libraries are right: computed with
# 450 digits.
EXACT = {
    "erf": [
        (0.805, "0.7450640009498160190814784"),
        (0.8079, "0.7467716738778163113286023"),
        (0.5153, "0.5338418796304859578268888"),
        (0.2858, "0.3139212844784065686286138"),
        (0.05393, "0.06079454358270819445956161"),
        (0.3834, "0.4123257945188628890610734"),
        (0.4085, "0.4365375345935596781958238"),
        (0.04528, "0.05105811185590697629123248"),
        (0.04876, "0.05497619541505199444028705"),
        (0.9992, "0.8423684412121633826541755"),
        (0.6524, "0.6438014702021810808490396"),
        (0.2345, "0.2598336626347928036492865"),
        (-3.088, "-0.9999874087999729412170862"),
        (-5.676, "-0.9999999999999990017689628"),
        (-5.309, "-0.9999999999999399899077555"),
        (-5.052, "-0.9999999999990974621423103"),
        (-2.884, "-0.999954690710993701158874"),
        (-3.367, "-0.9999980799022810991624459"),
        (-4.248, "-0.9999999981168619090473732"),
        (-1.292, "-0.9323248735015963021092252"),
        (-3.667, "-0.9999997850502348803224179"),
        (-2.303, "-0.9988737731808844781523003"),
        (-5.222, "-0.9999999999998475732180892"),
        (-1.308, "-0.9356563704302863404905433"),
        (1e-300, "1.128379167095512602172316e-300"),
        (1e-08, "1.128379167095512559892102e-8"),
    ],
    "erfc": [
        (1.075, "0.1284407240414561245165436"),
        (2.221, "0.001683902449260495710307354"),
        (-1.636, "1.979313257355913436922454"),
        (2.373, "0.0007909893452088117062199187"),
        (2.233, "0.001588888644797299617370662"),
        (-2.889, "1.999956048864160919648555"),
        (1.245, "0.07828988958653091382369615"),
        (-2.993, "1.999976913988252864238905"),
        (14.83, "1.162503929038291101066259e-97"),
        (13.26, "1.847986318421613915382373e-78"),
        (7.776, "3.953870064949359367013402e-28"),
        (10.64, "3.599825833160426895655343e-51"),
        (21.95, "1.46343651658227875362775e-211"),
        (10.44, "2.485624818690500449112766e-49"),
        (6.502, "3.742399218468654867569467e-20"),
        (19.42, "4.724376604618900857725167e-166"),
        (13.54, "9.970746607252295919188619e-82"),
        (21.78, "2.496503149069913604966839e-208"),
        (8.535, "1.515572068469557115022483e-33"),
        (10.51, "5.697264319852703040814595e-50"),
        (21.8, "1.043285724194158610557599e-208"),
        (14.92, "7.942459808517622140839581e-99"),
        (14.9, "1.443936910217577301573414e-98"),
        (8.551, "1.150928394757756257431917e-33"),
        (26.9, "1.152240567263921887384117e-316"),
        (27.1, "2.333190202158696740245019e-321"),
        (1e-20, "0.9999999999999999999887162"),
    ],
    "erf_inv": [
        (0.01221, "0.0108212531327870865358383"),
        (0.7839, "0.8746664856853979898608334"),
        (0.07209, "0.06397527208023197652184256"),
        (0.7097, "0.7477397732858891250648791"),
        (0.309, "0.2810737817183936391594973"),
        (0.7989, "0.9039822118423839573378491"),
        (0.3355, "0.30667835126202456080923"),
        (0.7866, "0.8798321551340136707840562"),
        (0.4672, "0.4410490065859415029691802"),
        (0.2017, "0.1806996095040695565907415"),
        (-0.9586, "-1.442145352748351298357122"),
        (-0.9478, "-1.37283415792934180700381"),
        (-0.9494, "-1.38229234827531094021442"),
        (-0.9142, "-1.214796328786479217977432"),
        (-0.8755, "-1.086226683541966886127022"),
        (-0.9425, "-1.343142691499810266099982"),
        (-0.8571, "-1.035965650907299128059661"),
        (-0.9507, "-1.390163426866662172671424"),
        (0.99999999, "4.052237243268763355386882"),
        (0.999999999999, "5.042031898572696130052926"),
        (0.9999999999999999, "5.863584748755167927207663"),
        (1e-300, "8.862269254527579853014489e-301"),
        (0.84, "0.9935356283473041871847201"),
        (-0.8397, "-0.9928226828109534553076007"),
    ],
    "sin": [
        (1e22, "-0.8522008497671888017727059"),
        (1e30, "0.009331468931175824057237219"),
        (-3e60, "0.9769314792226207996227553"),
        (5.319372648326541e255, "1.0"),
        (1.7976931348623157e308, "0.004961954789184061790502671"),
        (3.273390607896142e150, "0.4292573923424282777353293"),
        (1000000000.0, "0.5458434494486995642443873"),
        (-1000000010.0, "0.9138300129708386487221228"),
        (5.319372648326541e255, "1.0"),
    ],
    "cos": [
        (1e22, "0.5232147853951389454975945"),
        (1e30, "-0.9999564608959664601401886"),
        (-3e60, "-0.2135530025635369634598351"),
        (5.319372648326541e255, "-4.687165924254627611122583e-19"),
        (1.7976931348623157e308, "-0.9999876894265599374648701"),
        (3.273390607896142e150, "0.9031822026143886527836114"),
        (1000000000.0, "0.8378871813639023343897756"),
        (-1000000010.0, "-0.4060969187198012550734945"),
        (5.319372648326541e255, "-4.687165924254627611122583e-19"),
    ],
    "tan": [
        (1e22, "-1.628778225606898878549376"),
        (1e30, "-0.009331875232662406959757812"),
        (-3e60, "-4.574655788002611023832879"),
        (5.319372648326541e255, "-2133485385753703843.674853"),
        (1.7976931348623157e308, "-0.004962015874444894900500884"),
        (3.273390607896142e150, "0.4752721998948628874070984"),
        (1000000000.0, "0.6514522021451412885864527"),
        (-1000000010.0, "-2.250275662892589109259621"),
        (5.319372648326541e255, "-2133485385753703843.674853"),
    ],
}
EXACT_BOUNDS = {"erf": 1.5, "erfc": 4, "erf_inv": 3, "sin": 2, "cos": 2, "tan": 3}


def _function(key, rule, elem, lanes, inputs, outputs=1):
    """A loop over arrays, and what it declares."""
    f = Function(key, ["ptr"] * (inputs + outputs) + ["i64"])
    *pointers, size = f.parameters
    with f.loop(0, size, max(lanes, 1)) as i:
        places = [f.offset(pointer, i, elem) for pointer in pointers]
        results = rule(f, *(f.load(place, elem, lanes) for place in places[:inputs]))
        for place, result in zip(
            places[inputs:], results if outputs > 1 else [results], strict=True
        ):
            f.store(result, place)
    f.line("  ret void")
    return f.text(), f.declarations


def _jobs():
    for name, rule in FUNCTIONS.items():
        for elem in TYPES:
            # Of several registers, where there are instructions for one.
            for lanes in (LANES[elem], 0, 4, *([2 * LANES[elem]] if name == "exp" else [])):
                if name == "integer_pow":
                    if lanes == LANES[elem]:
                        for y in POWERS:
                            bound = lambda f, x, y=y: FUNCTIONS["integer_pow"](f, x, y=y)  # noqa: E731
                            yield f"{name}{y}".replace("-", "_"), bound, elem, lanes, 1, 1
                else:
                    yield name, rule, elem, lanes, 1 + (name in BINARY), 1
    yield "threefry", threefry2x32, "u32", 16, 4, 2


@pytest.fixture(scope="module")
def native():
    """All functions, compiled in one module: `native(name, elem, lanes)(*arrays)`."""
    texts, declarations, signatures = [], {}, {}
    for name, rule, elem, lanes, inputs, outputs in _jobs():
        key = f"{name}.{elem}.{lanes}"
        text, declared = _function(key, rule, elem, lanes, inputs, outputs)
        texts.append(text)
        declarations |= declared
        signatures[key] = (inputs, outputs)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly("\n".join([*declarations.values(), *texts]))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes.getModulePassManager().run(module, passes)
    code = llvm.create_mcjit_compiler(module, machine)
    code.finalize_object()

    def look_up(name, elem, lanes=None):
        key = f"{name}.{elem}.{LANES[elem] if lanes is None else lanes}"
        inputs, outputs = signatures[key]
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (inputs + outputs), ctypes.c_int64)
        entry = kind(code.get_function_address(key))

        def run(*arrays):
            # A loop has no rest: the last vector is filled up.
            size = arrays[0].size
            padded = [np.concatenate([x, x[:1].repeat(-size % 32)]) for x in arrays]
            out = [np.empty_like(padded[0]) for _ in range(outputs)]
            entry(*(x.ctypes.data for x in [*padded, *out]), padded[0].size)
            out = [x[:size] for x in out]
            return out[0] if outputs == 1 else out

        return run

    return look_up


@np.errstate(all="ignore")
def _errors(got, exact):
    """Distances in units of the last place; infinite where NaN or a zero's sign differ."""
    dtype = got.dtype
    info = np.finfo(dtype)
    rounded = exact.astype(dtype)
    unit = np.spacing(np.minimum(abs(rounded), info.max)).astype(exact.dtype)
    # The number after the greatest one is where infinity stands.
    after = 2 * exact.dtype.type(2) ** (info.maxexp - 1)
    value = np.where(np.isinf(got), np.copysign(after, got), got.astype(exact.dtype))
    target = np.where(abs(exact) > after, np.copysign(after, exact), exact)
    same = (got == rounded) | np.isnan(got) & np.isnan(rounded)
    out = np.where(same & ~np.isfinite(got), 0, abs(value - target) / unit)
    wrong = np.isnan(got) != np.isnan(rounded)
    wrong |= (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return np.where(wrong, np.inf, out)


def _edges(dtype):
    """Special values, numbers at which functions change their formula, and their neighbours."""
    info = np.finfo(dtype)
    values = [0.0, info.smallest_subnormal, info.smallest_normal, info.max, 2.0**-30, 1e5, 1e9]
    values += [0.3, 0.34657359, 0.5, np.sqrt(0.5), 1.0, np.sqrt(2), np.pi / 2, np.pi, 2.0, 3.0]
    values += [88.72284, 87.33655, 103.97208, 104.0, 709.782712893384, 745.1332191019411, 1024.0]
    values += [126.0, 127.0, 128.0, 149.0, 150.0, 1022.0, 1074.0, 0.84, 4.0, 10.05, 26.5, 1e30]
    finite = np.array(values, dtype)
    with np.errstate(over="ignore"):
        near = [finite, np.nextafter(finite, dtype(np.inf)), np.nextafter(finite, -dtype(np.inf))]
    positive = np.concatenate([*near, np.array([np.inf, np.nan], dtype)])
    return np.concatenate([positive, -positive])


def _samples(dtype, count, seed=0):
    """Bit patterns from all over the type, and as many numbers of everyday size."""
    rng = np.random.default_rng(seed)
    bits = np.dtype(dtype).itemsize * 8
    step = 2**bits // count
    word = np.dtype(f"uint{bits}").type
    patterns = np.arange(count, dtype=word) * word(step) + rng.integers(0, step, count, dtype=word)
    usual = rng.standard_normal(count) * 10 ** rng.uniform(-3, 2.5, count)
    return np.concatenate([_edges(dtype), patterns.view(dtype), usual.astype(dtype)])


def _pairs(name, dtype, count):
    xs, ys = _samples(dtype, count, 1), np.random.default_rng(2).permutation(_samples(dtype, count))
    edges = _edges(dtype)
    whole = 3 * np.arange(-4, 5, dtype=dtype)
    grid = [v.ravel() for v in np.meshgrid(edges, np.concatenate([edges, whole]))]
    out = [np.concatenate([xs, grid[0]]), np.concatenate([ys, grid[1]])]
    if name == "pow":
        # Results of all sizes: the exponent is chosen for the base.
        rng = np.random.default_rng(3)
        base = np.concatenate([np.exp(rng.uniform(-60, 60, count)), rng.normal(1, 0.01, count)])
        limit = np.log(np.finfo(dtype).max)
        power = rng.uniform(-1.1, 1.1, base.size) * limit / np.maximum(abs(np.log(base)), 1e-5)
        out = [
            np.concatenate([a, b.astype(dtype)])
            for a, b in zip(out, [base, np.maximum(np.minimum(power, 1e6), -1e6)], strict=True)
        ]
    return out


@pytest.mark.parametrize("name", BOUNDS)
def test_single_precision(native, name):
    bound, _, exact = BOUNDS[name]
    if name in BINARY:
        xs = _pairs(name, np.float32, 1 << 17)
    else:
        xs = [_samples(np.float32, 1 << 19)]
    with np.errstate(all="ignore"):
        errors = _errors(native(name, "f32")(*xs), exact(*(x.astype(np.float64) for x in xs)))
    worst = errors.argmax()
    assert errors[worst] <= bound, [x[worst] for x in xs]


@pytest.mark.parametrize("name", [n for n in BOUNDS if BOUNDS[n][1]])
def test_double_precision(native, name):
    _, bound, exact = BOUNDS[name]
    if name in BINARY:
        xs = _pairs(name, np.float64, 1 << 14)
    else:
        xs = [_samples(np.float64, 1 << 15)]
    # Where long double is no wider, NumPy itself is wrong by a last bit.
    slack = 0 if np.finfo(np.longdouble).nmant > 60 else 1
    with np.errstate(all="ignore"):
        errors = _errors(native(name, "f64")(*xs), exact(*(x.astype(np.longdouble) for x in xs)))
    worst = errors.argmax()
    assert errors[worst] <= bound + slack, [x[worst] for x in xs]


@pytest.mark.parametrize("name", EXACT)
def test_against_many_digits(native, name):
    xs = np.array([x for x, _ in EXACT[name]])
    exact = np.array([np.longdouble(value) for _, value in EXACT[name]])
    errors = _errors(native(name, "f64")(xs), exact)
    assert errors.max() <= EXACT_BOUNDS[name], xs[errors.argmax()]


@pytest.mark.parametrize("name", ["erf", "erfc", "erf_inv"])
def test_double_precision_at_edges(native, name):
    """Signs of zero, infinities and NaN, and about the right value elsewhere."""
    xs = _edges(np.float64)
    exact = {"erf_inv": scipy.special.erfinv}.get(name) or getattr(scipy.special, name)
    with np.errstate(all="ignore"):
        want = exact(xs).astype(np.longdouble)
        errors = _errors(native(name, "f64")(xs), want)
    # SciPy is off by 24 ulp itself near 26.5, and rounds tiny results to 0.
    known = abs(want) > 1e-300
    assert np.where(known | np.isnan(want), errors, 0).max() <= 32
    zeros = np.array([0.0, -0.0])
    np.testing.assert_array_equal(np.signbit(native("erf", "f64")(zeros)), [False, True])


def _digamma(x):
    """SciPy's loses digits of the fraction below 0."""
    turn = np.pi * (x - np.rint(x)).astype(np.longdouble)
    reflected = functions.digamma_p.evaluate(1 - x) - np.pi / np.tan(turn)
    out = np.where((x < 0) & (x != np.rint(x)), reflected, functions.digamma_p.evaluate(x))
    return out.astype(np.float64)


@pytest.mark.parametrize(
    "name, exact", [("lgamma", functions.lgamma_p.evaluate), ("digamma", _digamma)]
)
def test_gamma_family_in_double_precision(native, name, exact):
    xs = _samples(np.float64, 1 << 12)
    with np.errstate(all="ignore"):
        want, got = exact(xs), native(name, "f64")(xs)
        same = (got == want) | np.isnan(got) & np.isnan(want)
        # SciPy's own errors have a share in this.
        close = abs(got - want) <= 4e-15 + 6 * np.spacing(abs(want))
    assert (same | close).all(), xs[~(same | close)]


def test_every_function_has_a_bound():
    assert {*BOUNDS, "erf_inv", "integer_pow"} == {*FUNCTIONS}


def test_erf_inv_draws_the_samples_of_eager_code(native):
    xs = np.random.default_rng(0).uniform(-1, 1, 1 << 16).astype(np.float32)
    xs = np.concatenate([xs, np.array([0.0, -0.0, 1, -1, 2, -np.inf, np.nan], np.float32)])
    with np.errstate(all="ignore"):
        want = functions.erf_inv_p.evaluate(xs)
    errors = _errors(native("erf_inv", "f32")(xs), want.astype(np.float64))
    assert errors.max() <= 3
    assert (errors == 0).mean() > 0.85


@pytest.mark.parametrize("elem", TYPES)
@pytest.mark.parametrize("y", POWERS)
def test_integer_powers_equal_eager_ones(native, y, elem):
    xs = _samples(TYPES[elem], 1 << 10)
    with np.errstate(all="ignore"):
        want = elementwise.integer_pow_p.evaluate(xs, y=y)
    name = f"integer_pow{y}".replace("-", "_")
    np.testing.assert_array_equal(native(name, elem)(xs), want)


@pytest.mark.parametrize("elem", TYPES)
def test_subnormal_numbers_are_kept(native, elem):
    """Nothing is flushed to zero, neither what comes in nor what goes out."""
    dtype = TYPES[elem]
    tiny = np.finfo(dtype).smallest_subnormal * np.arange(1, 17).astype(dtype)
    for xs in (tiny, -tiny):
        for name in ("expm1", "log1p", "tanh", "sinh", "asinh", "atanh", "sin", "tan", "asin"):
            np.testing.assert_array_equal(native(name, elem)(xs), xs, err_msg=name)
        np.testing.assert_array_equal(native("atan", elem)(xs), xs)
    for name, least in (("exp", np.log(tiny[0])), ("exp2", np.log2(tiny[0]))):
        out = native(name, elem)(np.full(16, dtype(least)))
        assert 0 < out[0] <= 2 * tiny[0], name


@pytest.mark.parametrize("elem", TYPES)
def test_all_numbers_of_lanes_agree(native, elem):
    """Scalars and vectors give the same bits, the far arguments of angles included."""
    xs = _samples(TYPES[elem], 1 << 10)
    for name in FUNCTIONS:
        if name == "integer_pow":
            continue
        operands = [xs, xs[::-1].copy()] if name in BINARY else [xs]
        want = native(name, elem)(*operands)
        for lanes in (0, 4, *([2 * LANES[elem]] if name == "exp" else [])):
            got = native(name, elem, lanes)(*operands)
            np.testing.assert_array_equal(got, want, err_msg=f"{name} {lanes}")


def test_threefry(native):
    words = np.random.default_rng(0).integers(0, 2**32, (4, 1 << 10), dtype=np.uint32)
    want = generators.threefry2x32(list(words[:2].copy()), list(words[2:].copy()))
    np.testing.assert_array_equal(native("threefry", "u32", 16)(*words), want)
