"""Who owns the sockets of a connection, where the capture or the system says so: ``curl (pid 4123)``.

In: rows of ``connections``. Out: SQL for all who name lanes.
"""

from conchart.store.tables import Tables


def who(side: str, *, brief: bool = False) -> str:
    """Give the SQL of a text that names the owner of a side: process, pod, container; NULL where none is known.

    Args:
        side: ``client`` or ``server``.
        brief: Only the first of these that is known.
    """
    process = (
        f"concat(coalesce(nullif(split_part({side}_process, '/', -1), ''), 'process'), ' (pid ' || {side}_pid || ')')"
    )
    container = f"'container ' || coalesce({side}_container, left({side}_container_id, 12))"
    named_process = f"CASE WHEN {side}_process IS NOT NULL OR {side}_pid IS NOT NULL THEN {process} END"
    where = f"coalesce('pod ' || {side}_pod, {container})"
    return f"coalesce({named_process}, {where})" if brief else f"nullif(concat_ws(', ', {named_process}, {where}), '')"


def are_there(tables: Tables) -> bool:
    """Tell whether any owner is known: of most captures none is."""
    has_owner = f"coalesce({who('client', brief=True)}, {who('server', brief=True)}) IS NOT NULL"
    ((found,),) = tables.fetch(f"SELECT count(*) > 0 FROM (FROM connections WHERE {has_owner} LIMIT 1)")
    return bool(found)
