"""What a room keeps in the store: it names it in its own `store/hooks.py`, as `HOOKS`."""

from dataclasses import dataclass

from pollex.store.tables import Row


@dataclass(frozen=True)
class StoreTable:
    """A table of a room's rows in the store's database.

    A store that was made before the room was there gets it when it is opened for writing; one that
    is only read shows it empty.

    Attributes:
        kind: Its rows.
        more: What the table has beside their fields: keys.
        index: An index on it, by name, table and columns.
        objects: Columns of text in which each value is a JSON object.
    """

    kind: type[Row]
    more: str = ""
    index: str = ""
    objects: tuple[str, ...] = ()
