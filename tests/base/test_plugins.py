"""Plug-ins of accelerators: how they are found, and that programs run on their devices.

There is no accelerator here: a stub plug-in is a library that XLA's CPU client stands in for.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import namoo
import namoo.numpy as jnp
from namoo._base.config import Setting
from namoo.engines import plugins
from namoo.engines.plugins import Plugin

pytest.importorskip("jaxlib")

from namoo.engines.xla import clients, pjrt  # noqa: E402


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    plugins.plugins.cache_clear()
    monkeypatch.setattr(plugins, "_found", {})
    monkeypatch.setattr(clients, "_clients", dict(clients._clients))
    monkeypatch.setattr(clients, "_devices", dict(clients._devices))
    with Setting("platforms")(None):
        yield
    plugins.plugins.cache_clear()


@pytest.mark.parametrize(
    "text, found",
    [
        ("", []),
        ("mine:/a/b.so", [Plugin("mine", "/a/b.so")]),
        ("a:/x.so, b:/y.so", [Plugin("a", "/x.so"), Plugin("b", "/y.so")]),
    ],
)
def test_plugins_of_the_environment(monkeypatch, text, found):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", text)
    assert [*plugins.plugins()] == found


def test_a_malformed_environment(monkeypatch):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine")
    with pytest.raises(ValueError, match="name:path pairs"):
        plugins.plugins()


@pytest.mark.parametrize(
    "package, library, name, platform",
    [
        ("xla_cuda13", "xla_cuda_plugin.so", "cuda", "gpu"),
        ("xla_rocm7", "xla_rocm_plugin.so", "rocm", "gpu"),
        ("other", "pjrt_plugin_other_14.dylib", "other", "other"),
    ],
)
def test_plugins_of_packages(tmp_path, monkeypatch, package, library, name, platform):
    folder = tmp_path / "jax_plugins" / package
    folder.mkdir(parents=True)
    # It must not be imported: makers' packages want JAX itself.
    (folder / "__init__.py").write_text("raise AssertionError")
    (folder / library).touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "jax_plugins", raising=False)
    [found] = plugins.plugins()
    assert (found.name, found.platform) == (name, platform)
    assert found.library == str(folder / library)


def test_a_plugin_that_does_not_work_is_told_of_once(tmp_path, monkeypatch):
    library = tmp_path / "broken.so"
    library.write_bytes(b"no library")
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", f"broken:{library}")
    with pytest.warns(UserWarning, match="'broken'.*could not be used.*JAX_PLATFORMS=cpu"):
        assert namoo.devices()[0].platform == "cpu"
    assert namoo.devices()[0].platform == "cpu"


X = np.ones(3, np.float32)


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "cuda:/stub.so")
    asked = []

    def load(name, library, options, connection):
        asked.append((name, library, options["platform_name"]))
        return pjrt.cpu_client(2)

    monkeypatch.setattr(pjrt, "load_plugin", load)
    return asked


def test_programs_run_on_the_devices_of_a_plugin(stub):
    gpus = namoo.devices()
    assert stub == [("cuda", "/stub.so", "cuda")]
    assert [str(d) for d in gpus] == ["gpu:0", "gpu:1"] and repr(gpus[1]) == "GpuDevice(id=1)"
    assert gpus == namoo.devices("gpu") == namoo.devices("cuda")
    assert namoo.default_backend() == "gpu" and namoo.devices("cpu")[0].platform == "cpu"
    x = namoo.device_put(np.arange(4.0, dtype=np.float32), gpus[1])
    y = jnp.sin(x) + 1
    assert y.devices() == {gpus[1]} and y.committed
    np.testing.assert_allclose(y, np.sin(np.arange(4)) + 1, rtol=1e-6)
    # What nobody put anywhere goes to the first accelerator with XLA, and stays.
    z = namoo.jit(lambda x: x * 2, engine="xla")(jnp.ones(3))
    assert z.devices() == {gpus[0]} and not z.committed
    assert (z + 1).devices() == {gpus[0]}
    assert (z * y[:3]).devices() == {gpus[1]}
    # And the CPU is still there.
    assert namoo.jit(lambda x: x * 2)(jnp.ones(3)).devices() == {namoo.devices("cpu")[0]}


def printing(x):
    namoo.debug.print("{}", x)
    return x


def test_programs_name_the_call_of_their_platform(stub):
    text = namoo.jit(printing, device=namoo.devices()[0]).lower(X).as_text("stablehlo")
    assert '"xla_ffi_python_gpu_callback"' in text


def test_platforms_without_a_call_are_told_of(monkeypatch):
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "wafer:/stub.so")
    monkeypatch.setattr(pjrt, "load_plugin", lambda *what: pjrt.cpu_client(1))
    lowered = namoo.jit(printing, device=namoo.devices()[0]).lower(X)
    with pytest.raises(ValueError, match="wafer devices cannot call back into Python"):
        lowered.as_text("stablehlo")


def test_the_extension_of_a_plugin_lets_programs_call_back(tmp_path, monkeypatch):
    folder = tmp_path / "jax_cuda13_plugin"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "cuda_plugin_extension.py").write_text(
        "told = []\n"
        "register_custom_type = lambda *what: told.append(what)\n"
        "register_custom_call_target = lambda *what: told.append(what)\n"
        "ffi_types = lambda: {'a type': 1}\n"
        "ffi_handlers = lambda: {'a call': 2}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    client = pjrt.xla_client
    for name in ("_custom_callback_handler", "_custom_type_id_handler"):
        monkeypatch.setattr(client, name, {})
    monkeypatch.setattr(client, "pjrt_plugin_loaded", lambda name: False)
    monkeypatch.setattr(client, "pjrt_plugin_initialized", lambda name: True)
    monkeypatch.setattr(client, "load_pjrt_plugin_dynamically", lambda name, library: "the API")
    monkeypatch.setattr(client, "make_c_api_client", lambda *what: what)
    assert pjrt.load_plugin("cuda", "/stub.so", {}) == ("cuda", {}, None)
    told = sys.modules["jax_cuda13_plugin.cuda_plugin_extension"].told
    traits = client.CustomCallTargetTraits.DEFAULT
    assert told == [("the API", "a type", 1), ("the API", "a call", 2, "CUDA", 1, traits)]


def test_platforms_can_be_chosen(stub):
    with Setting("platforms")("cpu"):
        assert namoo.devices()[0].platform == "cpu"
    assert not stub
    with pytest.raises(RuntimeError, match="Unknown backend 'tpu'. Available backends are .*gpu"):
        namoo.devices("tpu")


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("cuda", {"platform_name": "cuda", "visible_devices": [1, 3], "node_id": 2}),
        ("rocm", {"platform_name": "ROCM", "node_id": 2, "num_nodes": 4}),
        ("tpu", {}),
    ],
)
def test_plugins_are_told_of_the_other_processes(monkeypatch, name, wanted):
    asked = []

    def load(name, library, options, connection):
        asked.append((options, connection))
        return pjrt.cpu_client(1)

    monkeypatch.setattr(pjrt, "load_plugin", load)
    monkeypatch.setattr(clients, "_clients", {})
    shared = {"distributed_client": "the connection", "node_id": 2, "num_nodes": 4}
    monkeypatch.setattr(clients, "_shared", shared)
    namoo.config.update("jax_cuda_visible_devices", "1,3")
    try:
        clients.plugin_client(plugins.Plugin(name, "/stub.so"))
    finally:
        namoo.config.update("jax_cuda_visible_devices", "all")
    [(options, connection)] = asked
    assert connection == "the connection" and wanted.items() <= options.items()
    assert ("node_id" in options) == (name != "tpu")


@pytest.mark.parametrize(
    ("platforms", "words"),
    [
        ("cuda", "jax-cuda12-plugin"),
        ("gpu", "jax-cuda12-plugin"),
        ("tpu", "pip install libtpu"),
        ("rocm,tpu", "pip install jax-rocm7-plugin"),
        ("toaster", "not in the list of known backends: ['cpu']"),
        ("cpu", None),
        ("cuda,cpu", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("prefix", ["JAX", "NAMOO"])
def test_a_platform_that_is_not_there_is_an_error_of_the_first_computation(
    platforms, words, prefix
):
    code = "import namoo, namoo.numpy as jnp\nnamoo.config\nprint(jnp.ones(2) + 1)"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "NAMOO_", "PJRT_"))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | {f"{prefix}_PLATFORMS": platforms},
        capture_output=True,
        text=True,
        check=False,
    )
    if words is None:
        assert done.stdout == "[2. 2.]\n", done.stderr
    else:
        assert f"Unable to initialize backend {platforms.split(',')[0]!r}" in done.stderr
        assert words in done.stderr and "RuntimeError" in done.stderr
