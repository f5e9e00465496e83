"""tf.contrib.training.HParams: settings by name, which may be given as `name=value,...`."""

from __future__ import annotations

from typing import Any


class HParams:
    """Each setting is an attribute, of the kind of its first value."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)

    def values(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def add_hparam(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        kind = type(getattr(self, name))
        setattr(self, name, value if kind is bool or isinstance(value, kind) else kind(value))

    def get(self, key: str, default: Any = None) -> Any:
        return getattr(self, key, default)

    def override_from_dict(self, values_dict: dict[str, Any]) -> HParams:
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse(self, values: str) -> HParams:
        """Take settings from `a=1,b=x`; ValueError where there is no such one."""
        for part in filter(None, values.split(",")):
            name, equals, text = part.partition("=")
            name = name.strip()
            if not equals or name not in self.__dict__:
                raise ValueError(f"Unknown hyperparameter or no value: {part}")
            is_flag = isinstance(getattr(self, name), bool)
            self.set_hparam(
                name, text.strip().lower() in ("true", "1") if is_flag else text.strip()
            )
        return self

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__

    def __repr__(self) -> str:
        return f"HParams({sorted(self.__dict__.items())})"


__all__ = ["HParams"]
