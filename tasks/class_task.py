"""What the tasks share whose logits are those of classes: how many there are, their names, and when a head fits."""

import warnings

from .task import Task


class ClassTask(Task):
    """A task with a head of `num_classes` outputs before which stands dropout.

    Attributes:
        head_settings: arguments beside the number of classes on which the weights of the head depend.
    """

    head_settings = ()

    def set_classes(self, num_classes, class_names, dropout) -> None:
        """Takes the constructor's arguments; `backbone` is already there.

        Raises:
            ValueError: there is no number of classes, or another than there are names.
        """
        if num_classes is None and not class_names:
            raise ValueError(
                "How many classes? Give num_classes or class_names: the checkpoint has no head that says it."
            )
        if num_classes is not None and class_names and num_classes != len(class_names):
            names = ", ".join(class_names)
            raise ValueError(f"num_classes={num_classes} but class_names has {len(class_names)}: {names}.")
        self.num_classes = num_classes or len(class_names)
        self.class_names = list(class_names) if class_names else None
        self.dropout = self.backbone.classifier_dropout if dropout is None else dropout

    @property
    def num_outputs(self):
        return self.num_classes

    @property
    def names(self) -> list[str]:
        """The names of the classes in the order of their ids, or the ids as strings where there are none."""
        return self.class_names or [str(i) for i in range(self.num_classes)]

    @classmethod
    def from_garden_preset(cls, path, load_weights=True, **kwargs):
        # KerasHub drops the trained head whenever num_classes is given; here only when it differs.
        saved = cls._saved(path)
        wanted = {name: kwargs[name] for name in cls.head_settings if name in kwargs}
        if count := kwargs.pop("num_classes", None) or len(kwargs.get("class_names") or ()):
            wanted["num_classes"] = count
        changed = [name for name, value in wanted.items() if saved and value != saved[name]]
        if changed or not saved:
            if "num_classes" in changed:
                kwargs = {"class_names": None, **kwargs}
            kwargs["num_classes"] = count or saved.get("num_classes")
        for name in changed:
            reason = f"{path} was saved with {name}={saved[name]}, not {wanted[name]}"
            warnings.warn(f"{reason}: the head is fresh and in need of training.", stacklevel=4)
        return super().from_garden_preset(path, load_weights, **kwargs)

    @classmethod
    def complete(cls, arguments, checkpoint):
        if arguments.get("num_classes") or arguments.get("class_names"):
            return arguments
        names = checkpoint.class_names(cls.__base__.__name__) or []
        generic = all(name == f"LABEL_{i}" for i, name in enumerate(names))
        return {**arguments, "num_classes": len(names) or None, "class_names": None if generic else names}

    def get_config(self):
        own = {"num_classes": self.num_classes, "dropout": self.dropout, "class_names": self.class_names}
        return {**super().get_config(), **own, **{name: getattr(self, name) for name in self.head_settings}}
