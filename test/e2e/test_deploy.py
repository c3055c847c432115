"""What stands under deploy/ is accepted by what it is written for."""
import json
import os
import re
import subprocess
import sys

import harness
import jsonschema
import kubernetes_validate
import yaml

DEPLOY = harness.ROOT / "deploy"
CLIENTS = harness.ROOT / os.environ.get("CLIENTS", "build")
VERSION = re.search(r'WEIR_VERSION "(.*)"', (harness.ROOT / "src/base/version.h").read_text())[1]


def check_settings(path, folder):
    command = [str(harness.BINARY), "config", "check", str(path)]
    env = harness.clean_environment({"HOME": str(folder)})
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr


def objects():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes/weir.yaml").read_text()))


def test_kubernetes_knows_every_field_of_every_object():
    for item in objects():
        kubernetes_validate.validate(item, "1.30", strict=True)


def test_the_objects_of_kubernetes_fit_each_other_and_the_program(tmp_path):
    by_kind = {}
    for item in objects():
        by_kind.setdefault(item["kind"], []).append(item)
    (config,), (stateful,), (policy,) = (
        by_kind[kind] for kind in ("ConfigMap", "StatefulSet", "NetworkPolicy")
    )
    (tmp_path / "weir.yaml").write_text(config["data"]["weir.yaml"])
    check_settings(tmp_path / "weir.yaml", tmp_path)

    pod = stateful["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    listen = yaml.safe_load(config["data"]["weir.yaml"])["listen"]
    assert ports == {name: int(address.rsplit(":", 1)[1]) for name, address in listen.items()}
    assert container["readinessProbe"]["grpc"]["port"] == ports["grpc"]
    assert container["image"] == f"weir:{VERSION}"
    labels = pod["metadata"]["labels"]
    services = {item["metadata"]["name"]: item["spec"] for item in by_kind["Service"]}
    assert stateful["spec"]["serviceName"] in services
    for spec in services.values():
        assert spec["selector"] == labels
        assert {port["targetPort"] for port in spec["ports"]} <= set(ports)
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    allowed = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    assert allowed == set(ports)

    mounts = {mount["name"] for mount in container["volumeMounts"]}
    claims = {claim["metadata"]["name"] for claim in stateful["spec"]["volumeClaimTemplates"]}
    assert mounts == claims | {volume["name"] for volume in pod["spec"]["volumes"]}
    secrets = set((DEPLOY / "kubernetes/weir.yaml").read_text().split("--from-literal=")[1:])
    keys = {text.split("=")[0] for text in secrets}
    files = {v["value"].rsplit("/", 1)[1] for v in container["env"] if v["name"].endswith("_FILE")}
    assert files == keys


def test_compose_knows_every_field(tmp_path):
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    jsonschema.Draft7Validator(json.loads((CLIENTS / "compose/compose_spec.json").read_text())).validate(
        document
    )
    service = document["services"]["weir"]
    assert service["image"] == f"weir:{VERSION}" and service["read_only"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).exists()


def instructions(path):
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.M).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


def test_the_containers_run_without_root_and_ask_for_health_without_a_shell():
    """Where no builder is: its words are those of a Containerfile, and say what they must."""
    words = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE"}
    words |= {"STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}
    for name in ("Containerfile", "agentbreeder/Dockerfile"):
        lines = instructions(DEPLOY / name)
        assert {line[0] for line in lines} <= words
        last = {line[0]: line[1] for line in lines}
        assert last["USER"] == "65532:65532"
        assert last["HEALTHCHECK"].endswith('CMD ["/usr/bin/weir", "health"]')
        assert "PORT=8080" in last["ENV"] and "8080" in last["EXPOSE"]


BUILDER = """
import json, pathlib, sys
from engine.config_parser import parse_config
from engine.runtimes.registry import get_runtime_from_config
folder = pathlib.Path(sys.argv[1])
config = parse_config(folder / "agent.yaml")
builder = get_runtime_from_config(config)
verdict = builder.validate(folder, config)
image = builder.build(folder, config)
print(json.dumps([verdict.valid, verdict.errors, image.tag, image.dockerfile_content,
                  sorted(path.name for path in image.context_dir.iterdir())]))
"""


def test_the_builder_of_agentbreeder_takes_the_folder_as_it_is(tmp_path):
    folder = DEPLOY / "agentbreeder"
    check_settings(folder / "agent.yaml", tmp_path)
    (upstream,) = (CLIENTS / "agentbreeder").glob("agentbreeder-*")
    done = subprocess.run(
        [sys.executable, "-c", BUILDER, str(folder)],
        env={**os.environ, "PYTHONPATH": str(upstream), "TMPDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=120,
    )
    assert done.returncode == 0, done.stderr
    valid, errors, tag, dockerfile, files = json.loads(done.stdout.splitlines()[-1])
    assert (valid, errors, tag) == (True, [], "agentbreeder/weir-agent:0.1.0")
    assert dockerfile == (folder / "Dockerfile").read_text()
    assert files == ["Dockerfile", "agent.yaml", "python", "requirements.txt"]


def test_the_health_check_of_ecs_finds_a_python(weir, tmp_path):
    """It says `python -c ...` in a shell; the container has weir in Python's place."""
    (tmp_path / "weir").symlink_to(harness.BINARY)
    code = "import urllib.request; urllib.request.urlopen('http://localhost:8080/health')"
    stand_in = DEPLOY / "agentbreeder/python"

    def check(port, *args):
        env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "PORT": str(port)}
        return subprocess.run([str(stand_in), *args], env=env, capture_output=True, timeout=60)

    assert check(weir.port("http"), "-c", code).returncode == 0
    assert check(1, "-c", code).returncode == 1
    assert check(1, "script.py").returncode == 2


def test_weir_health_needs_no_libcurl_where_there_is_a_proxy(weir, tmp_path):
    """The package only suggests libcurl, and this machine's daemon is never asked through a proxy."""
    (tmp_path / "libcurl.so.4").write_text("no library\n")
    env = harness.clean_environment({"HOME": str(tmp_path), "http_proxy": "http://127.0.0.1:9",
                                     "LD_LIBRARY_PATH": str(tmp_path)})
    command = [str(harness.BINARY), "health", "--http", f"127.0.0.1:{weir.port('http')}"]
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "weir serves\n", "")


def test_weir_health_says_why_a_daemon_does_not_serve(weir, start_weir, tmp_path):
    def health(*args):
        env = harness.clean_environment({"HOME": str(tmp_path)})
        command = [str(harness.BINARY), "health", *args]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    assert health("--http", f":{weir.port('http')}") == (0, "weir serves\n")
    socket = tmp_path / "weir.sock"
    other = start_weir(args=("--http", f"unix:{socket}", "--admin", "127.0.0.1:0"))
    assert health("--http", f"unix:{socket}") == (0, "weir serves\n")
    assert health("--admin", f"127.0.0.1:{other.port('admin')}") == (0, "weir serves\n")
    (tmp_path / "weir.yaml").write_text(f"listen: {{http: 'unix:{socket}'}}\n")
    assert health() == (0, "weir serves\n")  # by the file that stands here
    other.stop()
    code, text = health("--http", f"unix:{socket}")
    assert code == 1 and "is it running with these settings?" in text
    assert health("--http", "127.0.0.1:0")[1].endswith("name the one it took with --http HOST:PORT\n")
    assert "--admin 127.0.0.1:9464" in health("--http", "off")[1]
    assert health("now")[0] == 2
