//! Hostile bytes: files of `fixtures/tables`, mutated, given to what decodes them. An error or an answer, never a panic of ours,
//! never more memory than a bound in proportion to the input.
//!
//! ```text
//!  corpus ──▶ mutate ──▶ targets        a function for each kind of bytes
//!               rounds ──┴──▶ memory    the most that was allocated at once
//! ```
//!
//! FLOE_FUZZ_ROUNDS=1000000 goes on for longer; FLOE_SEED=... repeats a run, and the input that failed lies in a file.

// Clippy knows test functions, not the functions that they share. Seeds and rounds are printed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod avro;
mod corpus;
mod memory;
mod mutate;
mod rounds;
mod targets;

use corpus::{Corpus, Fixture, Read};
use rounds::{Bound, Fuzz};

const MIB: usize = 1 << 20;

/// Of Avro that is stored as it is: an entry of a few bytes becomes a struct, a metric of two bytes a column.
const PLAIN_AVRO: Bound = Bound {
    allowance: MIB,
    each_byte: 512,
};
/// What is compressed may unpack to as much whatever its length.
const PACKED_AVRO: Bound = Bound {
    allowance: 64 * MIB,
    each_byte: 512,
};
const VECTORS: Bound = Bound {
    allowance: MIB,
    each_byte: 64,
};
/// A page may unpack to 16 MiB whatever its length, and to 1,100 bytes for each of its own beyond that.
const PARQUET: Bound = Bound {
    allowance: 24 * MIB,
    each_byte: 1100,
};
/// Beside the metadata, the plan holds what it reads; the text of a condition goes through a whole SQL parser.
const PLANS: Bound = Bound {
    allowance: 16 * MIB,
    each_byte: 1024,
};

#[test]
fn hostile_manifest_lists_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("manifest-list", 4000);
    let files = Corpus::load().lists;
    fuzz.run(avro::plain(&files), PLAIN_AVRO, targets::manifest_list);
    fuzz.run(files, PACKED_AVRO, targets::manifest_list);
}

#[test]
fn hostile_manifests_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("manifest", 4000);
    let files = Corpus::load().manifests;
    fuzz.run(avro::plain(&files), PLAIN_AVRO, targets::manifest);
    fuzz.run(files, PACKED_AVRO, targets::manifest);
}

#[test]
fn hostile_deletion_vectors_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("deletion-vector", 2000);
    let vectors = Corpus::load().vectors;
    // Whole Puffin files, of which checksums find nearly all that is wrong ...
    let files = vectors.iter().map(Read::delete_file).collect();
    fuzz.run_with(&vectors, files, VECTORS, targets::delete_file);
    // ... and bitmaps under the checksum of what they are.
    let bitmaps = vectors.iter().map(targets::bitmap).collect();
    fuzz.run_with(&vectors, bitmaps, VECTORS, targets::sealed_bitmap);
}

#[test]
fn hostile_position_deletes_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("position-deletes", 1500);
    let deletes = Corpus::load().positions;
    let files = deletes.iter().map(Read::delete_file).collect();
    fuzz.run_with(&deletes, files, PARQUET, targets::delete_file);
}

#[test]
fn hostile_equality_deletes_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("equality-deletes", 1500);
    let deletes = Corpus::load().equality;
    let files = deletes.iter().map(Read::delete_file).collect();
    fuzz.run_with(&deletes, files, PARQUET, targets::delete_file);
}

#[test]
fn hostile_data_files_give_an_error_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("data-file", 1500);
    let data = Corpus::load().data;
    let files = data.iter().map(|read| read.data_bytes.to_vec()).collect();
    fuzz.run_with(&data, files, PARQUET, targets::data_file);
}

#[test]
fn hostile_metadata_gives_an_error_or_a_plan_and_costs_what_it_weighs() {
    let fuzz = Fuzz::of("metadata", 400);
    let tables = Corpus::load().tables;
    let files = tables.iter().map(|table| table.metadata.clone()).collect();
    fuzz.run_with(&tables, files, PLANS, targets::metadata);
}

#[test]
fn hostile_conditions_give_an_error_or_a_plan_and_cost_what_they_weigh() {
    let fuzz = Fuzz::of("condition", 400);
    let tables = Corpus::load().tables;
    let of = |table: &Fixture| {
        let texts = table.conditions.iter().take(4).cloned();
        let texts = texts.map(|text| (table.clone(), text.into_bytes()));
        texts.collect::<Vec<_>>()
    };
    let (tables, texts): (Vec<_>, Vec<_>) = tables.iter().flat_map(of).unzip();
    fuzz.run_with(&tables, texts, PLANS, targets::condition);
}
