// The one source of the object library that owns the precompiled header.
