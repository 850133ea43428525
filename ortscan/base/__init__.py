"""What every floor may use: files, locks, processes, and walks over models as protobuf has them."""

__all__: list[str] = []
