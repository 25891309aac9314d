//! Small programs over the SDK: see the `examples` folder.
