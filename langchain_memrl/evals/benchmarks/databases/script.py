"""What agents without a model can do with a database."""

import random
from collections.abc import Sequence

from langchain_memrl.evals.benchmarks.agents import Script
from langchain_memrl.evals.benchmarks.databases.attempt import SQL, DbAttempt
from langchain_memrl.evals.benchmarks.databases.clauses import clauses_of


class SqlScript(Script[DbAttempt]):
    """Statements made of clauses; a memory shows the forms of the clauses of its statements."""

    def solve(self, attempt: DbAttempt) -> None:
        """Run the right statement and commit what it gives."""
        attempt.commit_rows(attempt.run(attempt.task.sql).rows)

    def guess(self, attempt: DbAttempt, rng: random.Random) -> None:
        """Ask for something, or delete something, and commit what that gives."""
        table = attempt.task.table
        columns = rng.sample(table.names, rng.randint(1, len(table.names)))
        place = rng.randrange(len(table.names))
        value = str(rng.choice(table.rows)[place]).replace("'", "''") if table.rows else ""
        start = rng.choice([f"SELECT `{'`, `'.join(columns)}` FROM", "DELETE FROM"])
        where = f"`{table.names[place]}` {rng.choice('=<>')} '{value}'"
        attempt.commit_rows(attempt.run(f"{start} `{table.name}` WHERE {where}").rows)

    def recite(self, attempt: DbAttempt, memories: Sequence[str]) -> None:
        """Write the clauses whose form a memory shows; without a beginning give up."""
        known = {form for memory in memories for form in forms_in(memory)}
        clauses = [clause for clause in clauses_of(attempt.task.sql) if clause.form in known]
        if not clauses or not clauses[0].opens:
            attempt.commit("I do not know")
            return
        statement = " ".join(clause.text for clause in clauses)
        attempt.commit_rows(attempt.run(statement).rows)

    def fits(self, attempt: DbAttempt, memory: str) -> bool:
        """Whether a memory shows how the right statement begins."""
        return clauses_of(attempt.task.sql)[0].form in forms_in(memory)

    def truth(self, attempt: DbAttempt) -> str:
        """The right statement."""
        return f"{SQL}{' '.join(attempt.task.sql.split())}"


def forms_in(experience: str) -> set[str]:
    """The forms of the clauses of every statement in a memory."""
    return {
        clause.form
        for line in experience.splitlines()
        if line.startswith(SQL)
        for clause in clauses_of(line.removeprefix(SQL))
    }
