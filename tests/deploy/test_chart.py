"""The Helm chart, rendered by Helm's own engine and checked against the schemas of Kubernetes."""

import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import tacit
from tacit import cli

validate = pytest.importorskip("kubernetes_validate", reason="`make setup` installs it")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("helm_python") is None,
    reason="helm-python-sdk is not installed: `make setup` does it where there is a wheel",
)

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "tacit-party"

#: Releases of Kubernetes that the chart is checked against: the oldest that it takes of those whose
#: schemas are there, and the newest.
RELEASES = ("1.28", validate.latest_version())

#: Two cells of party 1, with everything that is off by default.
FULL: dict[str, Any] = {
    "party": 1,
    "cells": 2,
    "modelsClaim": "models",
    "image": {"repository": "registry.example/tacit", "pullSecrets": [{"name": "pull"}]},
    "service": {"annotations": {"example.org/internal": "true"}},
    "networkPolicy": {"parties": ["192.0.2.7/32", "2001:db8::/64"], "clients": ["0.0.0.0/0"]},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "mpc", "operator": "Exists"}],
}


@cache
def _by_helm(values: str) -> str:
    made = subprocess.run(
        [sys.executable, Path(__file__).with_name("render_chart.py"), CHART],
        input=values,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def by_helm(values: dict[str, Any] | None) -> dict[str, Any]:
    """Returns what Helm makes of the chart with these values; without values what lint says."""
    return json.loads(_by_helm(json.dumps(values)))


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the chart's objects, in the order of their files."""
    return by_helm(values)["objects"]


def of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


def pod(values: dict[str, Any]) -> dict[str, Any]:
    (found,) = of_kind(rendered(values), "StatefulSet")
    return found["spec"]["template"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    "values", [{}, FULL, {**FULL, "dealer": True}], ids=["defaults", "full", "dealer"]
)
def test_objects_follow_the_schemas(values: dict[str, Any], release: str) -> None:
    objects = rendered(values)
    for each in objects:
        validate.validate(each, release, strict=True)
    kinds = sorted(each["kind"] for each in objects)
    assert kinds == (
        ["NetworkPolicy", "PodDisruptionBudget", "Service", "Service", "Service", "StatefulSet"]
        if values
        else ["NetworkPolicy", "Service", "Service", "StatefulSet"]
    )


def test_the_schemas_refuse_what_is_wrong() -> None:
    (found,) = of_kind(rendered({}), "StatefulSet")
    found["spec"]["replica"] = found["spec"].pop("replicas")
    with pytest.raises(validate.ValidationError):
        validate.validate(found, validate.latest_version(), strict=True)


@pytest.mark.parametrize(
    "values",
    [
        {"party": "1"},
        {"cells": 0},
        {"networkPolicy": {"parties": ["a.example"]}},
        {"cell": 2},
        # No labels would let all namespaces in.
        {"networkPolicy": {"monitoring": {"kubernetes.io/metadata.name": None}}},
        {"networkPolicy": {"monitoring": None}},
        # Without the entry there would be no policy, and nobody told.
        {"networkPolicy": {"enabled": None}},
    ],
    ids=["text", "none", "a name", "unknown", "no labels", "no monitoring", "neither on nor off"],
)
def test_values_are_checked(values: dict[str, Any]) -> None:
    assert "values don't meet the specifications" in by_helm(values)["error"]


def test_a_pod_has_no_rights() -> None:
    found = pod(FULL)["spec"]
    assert found["automountServiceAccountToken"] is False
    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    containers = [*found["initContainers"], *found["containers"]]
    assert len(containers) == 2
    for each in containers:
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert each["image"] == "registry.example/tacit:0.1.0"
    writable = [
        mount["mountPath"]
        for mount in found["containers"][0]["volumeMounts"]
        if not mount.get("readOnly")
    ]
    assert writable == ["/tmp"]


def test_each_cell_has_its_configuration_and_its_service() -> None:
    """Replica i of every party forms session i."""
    objects = rendered(FULL)
    (stateful,) = of_kind(objects, "StatefulSet")
    assert stateful["spec"]["replicas"] == 2
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        "serve", "--config", "/etc/tacit/service-$(CELL).toml", "--party", "1", "--threads", "2",
    ]  # fmt: skip
    (cell,) = (each for each in container["env"] if each["name"] == "CELL")
    path = cell["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == "metadata.labels['apps.kubernetes.io/pod-index']"
    name, labels = stateful["metadata"]["name"], stateful["spec"]["template"]["metadata"]["labels"]
    services = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "Service")}
    assert stateful["spec"]["serviceName"] in services
    for number in range(2):
        spec = services[f"{name}-cell-{number}"]
        own = {**labels, "statefulset.kubernetes.io/pod-name": f"{name}-{number}"}
        assert spec["selector"].items() <= own.items()
        assert spec["selector"]["statefulset.kubernetes.io/pod-name"] == f"{name}-{number}"
        # Otherwise no session could open, since no party is ready before it.
        assert spec["publishNotReadyAddresses"] is True
    assert stateful["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_ports_of_probes_and_services_are_those_of_the_container() -> None:
    objects = rendered(FULL)
    (container,) = pod(FULL)["spec"]["containers"]
    ports = {each["name"] for each in container["ports"]}
    for probe, page in (("startup", "healthz"), ("liveness", "healthz"), ("readiness", "readyz")):
        asked = container[f"{probe}Probe"]["httpGet"]
        assert (asked["path"], asked["port"] in ports) == (f"/{page}", True)
    named = [port for each in of_kind(objects, "Service") for port in each["spec"]["ports"]]
    assert {port["targetPort"] for port in named} == ports


def test_the_network_policy_lets_through_what_it_names_alone() -> None:
    (policy,) = of_kind(rendered(FULL), "NetworkPolicy")
    spec = policy["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    peers = [{"ipBlock": {"cidr": "192.0.2.7/32"}}, {"ipBlock": {"cidr": "2001:db8::/64"}}]
    by_port = {rule["ports"][0]["port"]: rule["from"] for rule in spec["ingress"]}
    assert by_port["parties"] == peers
    assert by_port["clients"] == [{"ipBlock": {"cidr": "0.0.0.0/0"}}]
    assert by_port["status"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    assert spec["egress"][0]["to"] == peers
    # Without addresses nobody is let through, and nobody everywhere.
    (closed,) = of_kind(rendered({}), "NetworkPolicy")
    assert [rule["ports"][0]["port"] for rule in closed["spec"]["ingress"]] == ["status"]
    assert all(rule.get("from") for rule in closed["spec"]["ingress"])


def test_the_dealer_takes_parties_and_nobody_else() -> None:
    objects = rendered({**FULL, "dealer": True})
    (stateful,) = of_kind(objects, "StatefulSet")
    assert stateful["metadata"]["name"] == "shop-dealer"
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    words = container["args"]
    assert words == [
        "serve", "--config", "/etc/tacit/service-$(CELL).toml", "--dealer", "--threads", "2",
    ]  # fmt: skip
    assert callable(cli.command_line().parse_args(words).command)
    assert [port["name"] for port in container["ports"]] == ["parties"]
    # It has no page that a probe could ask for.
    assert not [name for name in container if name.endswith("Probe")]
    named = [port for each in of_kind(objects, "Service") for port in each["spec"]["ports"]]
    assert {port["targetPort"] for port in named} == {"parties"}
    (policy,) = of_kind(objects, "NetworkPolicy")
    assert [rule["ports"][0]["port"] for rule in policy["spec"]["ingress"]] == ["parties"]
    # Its pods are no party's.
    party = pod(FULL)["metadata"]["labels"]
    selector = policy["spec"]["podSelector"]["matchLabels"]
    assert not selector.items() <= party.items()


def laid(folder: Path, party: int) -> None:
    """Runs the line of a pod's first container, with folders below ``folder`` for its own."""
    (first,) = pod({"party": party, "threads": 1})["spec"]["initContainers"]
    line = first["command"][-1]
    for path in ("/public/", "/key/", "/etc/tacit"):
        line = line.replace(path, f"{folder}{path}")
    (folder / "etc" / "tacit").mkdir(parents=True)
    subprocess.run([*first["command"][:-1], line], check=True)


def test_files_are_laid_with_rights_that_tacit_takes(tmp_path: Path) -> None:
    """Nobody but its owner may read a key."""
    for path, mode in (
        ("public/service-0.toml", 0o644),
        ("public/lenet.py", 0o644),
        ("public/party-0.pem", 0o644),
        ("key/party-1.key", 0o440),
    ):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(path)
        (tmp_path / path).chmod(mode)
    laid(tmp_path, 1)
    etc = tmp_path / "etc" / "tacit"
    found = {
        str(each.relative_to(etc)): each.stat().st_mode & 0o777
        for each in etc.rglob("*")
        if each.is_file()
    }
    assert found == {
        "service-0.toml": 0o444,
        "lenet.py": 0o444,
        "certificates/party-0.pem": 0o444,
        "certificates/party-1.key": 0o400,
    }


def test_helm_has_nothing_to_say_against_the_chart() -> None:
    found = by_helm(None)
    assert found["errors"] == []
    assert [each for each in found["messages"] if each["severity"] > 1] == []


def test_the_version_of_the_chart_is_that_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tacit.__version__
