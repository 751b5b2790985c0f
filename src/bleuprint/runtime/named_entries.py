"""Mappings in a document whose entries are dataclasses by name, such as cleaning rules."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, ValidationError, core_schema

from bleuprint.runtime.pydantic_adapters import strict_validator
from bleuprint.runtime.schema import (
    SettingError,
    cause_of,
    describe_pydantic_error,
    keys_of,
    to_json_value,
)


@dataclass(frozen=True)
class NamedEntries:
    """The annotation of a field that is a mapping in a document and a tuple of dataclasses here.

    For example, the cleaning rules `{length: {max: 250}, numerals: {}}` are read as
    `(Length(max=250), Numerals())`.

    Attributes:
        classes: The dataclass of each entry by its name. Their order is the order of the tuple,
            whatever the order in the document.
        find_class: Returns the dataclass of an entry with another name, or None if the name is
            unknown. These entries follow the others, sorted by their names.
        pattern_of_found_names: A regular expression of the names that `find_class` knows, for JSON
            Schema; empty if there are none.
    """

    classes: Mapping[str, type]
    find_class: Callable[[str], type | None] | None = None
    pattern_of_found_names: str = ""

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Tell pydantic how to read and write a field that has this object as its annotation.

        The mapping `{length: {max: 250}}` of a document becomes the tuple `(Length(max=250),)` of
        the program. All entries are optional, and unknown names are refused.
        """
        entry_schemas = {}
        for name, entry_class in self.classes.items():
            entry_schema = handler.generate_schema(entry_class)
            entry_schemas[name] = core_schema.typed_dict_field(entry_schema, required=False)
        mapping_schema = core_schema.typed_dict_schema(entry_schemas, extra_behavior="forbid")
        tuple_schema = core_schema.no_info_after_validator_function(self._as_tuple, mapping_schema)
        return core_schema.no_info_wrap_validator_function(
            self._read,
            tuple_schema,
            serialization=core_schema.plain_serializer_function_ser_schema(_as_mapping),
        )

    def __get_pydantic_json_schema__(
        self, entries_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the JSON Schema of the mapping, with the names that `find_class` knows."""
        schema = handler(entries_schema)
        if self.pattern_of_found_names:
            schema["patternProperties"] = {self.pattern_of_found_names: {"type": "object"}}
        return schema

    def _read(self, document: Any, read_known: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Read the entries of a mapping, also those whose dataclasses `find_class` finds.

        Args:
            document: The mapping in the document, or a value of a wrong type.
            read_known: Reads a mapping that has only the entries in `classes`.
        """
        if self.find_class is None or not isinstance(document, Mapping):
            return read_known(document)
        known_entries = {}
        found_entries = []
        for name, value in sorted(document.items(), key=lambda entry: str(entry[0])):
            entry_class = self.find_class(str(name))
            if entry_class is None:
                known_entries[name] = value
            else:
                found_entries.append(_read_entry(str(name), value, entry_class))
        return read_known(known_entries) + tuple(found_entries)

    def _as_tuple(self, entries: dict[str, Any]) -> tuple[Any, ...]:
        """Return the entries of a mapping in the order of `classes`."""
        return tuple(entries[name] for name in self.classes if name in entries)


def _as_mapping(instances: tuple[Any, ...]) -> dict[str, Any]:
    """Return a tuple of dataclasses, such as cleaning rules, as the mapping in a document."""
    return {instance.key(): to_json_value(instance) for instance in instances}


def _read_entry(name: str, value: Any, entry_class: type[Any]) -> Any:
    """Build the dataclass of one entry of a mapping.

    Args:
        name: The name of the entry, for messages.
        value: Its value in the document.
        entry_class: The dataclass.

    Raises:
        SettingError: The value does not fit the dataclass.
    """
    try:
        return strict_validator(cast(Any, entry_class)).validate_python(value)
    except ValidationError as error:
        detail = error.errors()[0]
    keys = keys_of(detail)
    cause = cause_of(detail)
    if cause is not None:
        raise SettingError([name, *keys], str(cause))
    raise SettingError([name, *keys], describe_pydantic_error(detail, keys, entry_class))
