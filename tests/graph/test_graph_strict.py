from langgraph.checkpoint.serde import _msgpack


def test_all_of_this_also_holds_with_langgraphs_strict_serialiser(strict_run):
    if strict_run is None:  # the run inside
        assert _msgpack.STRICT_MSGPACK_ENABLED
        return
    output = strict_run()
    assert " passed" in output.splitlines()[-1], output[-5000:]
    assert not any(word in output.splitlines()[-1] for word in ("failed", "error", "skipped"))
