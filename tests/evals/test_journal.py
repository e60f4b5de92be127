from langchain_memrl.evals.environment import Trial
from langchain_memrl.evals.running.acting import Answer, Journal


def test_answers_come_back_whatever_they_hold_and_a_cut_line_is_none(tmp_path):
    journal = Journal(tmp_path / "answers.journal")
    journal.start({})
    kept = {}
    for number, text in enumerate(
        ["plain", "two\u2028lines", "next\u0085line", "für", "a\nb", "\x0b\x1c"]
    ):
        kept[f"e{number}"] = Answer(Trial(success=True, answer=text, trajectory=text), 0.5)
        journal.add(f"e{number}", kept[f"e{number}"])
    path = tmp_path / "answers.journal"
    path.write_bytes(path.read_bytes() + '{"episode_id": "ü'.encode()[:-1])
    assert journal.read() == kept
