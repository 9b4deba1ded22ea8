"""Objects are put together to jobs."""

from tests.product.cli import worlds


def test_jobs_of_one_name_in_two_namespaces_keep_to_their_own() -> None:
    a, b = worlds.read(
        [worlds.mpi_job(namespace="b", replicas=1), worlds.mpi_job(namespace="a", replicas=2)],
        pods=[worlds.worker(0, namespace="a"), worlds.worker(1, namespace="a"), worlds.worker(0, namespace="b")],
        configs=[worlds.config_map(worlds.workers(0), namespace="b")],
        roles=[worlds.role(worlds.workers(0, 1), namespace="a")],
    )
    assert (a.view.namespace, len(a.view.workers), a.view.config) == ("a", 2, None)
    assert a.view.role is not None
    assert (b.view.namespace, len(b.view.workers), b.view.published_pods) == ("b", 1, ("train-worker-0",))
    assert b.view.role is None
    assert list(b.pods) == ["train-worker-0"]


def test_what_an_earlier_job_of_the_name_left_is_not_shown() -> None:
    old = worlds.worker(0)
    old["metadata"]["ownerReferences"][0]["uid"] = "of an earlier job"
    [snapshot] = worlds.read([worlds.mpi_job()], pods=[old])
    assert not snapshot.view.workers


def test_jobs_are_sorted_by_namespace_and_name() -> None:
    jobs = [worlds.mpi_job(name=name, namespace=ns) for ns, name in (("b", "x"), ("a", "z"), ("a", "y"))]
    order = [(found.view.namespace, found.view.name) for found in worlds.read(jobs)]
    assert order == [("a", "y"), ("a", "z"), ("b", "x")]


def test_roles_that_may_not_be_read_differ_from_missing_roles() -> None:
    assert worlds.read([worlds.mpi_job()], roles=None)[0].role_readable is False
    assert worlds.read([worlds.mpi_job()], roles=[])[0].role_readable is True
