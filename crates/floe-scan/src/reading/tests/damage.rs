//! Damaged files: an error or the rows, never a panic, never an end that looks like one.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use iceberg::spec::{PrimitiveType, SchemaRef};

use super::kit::*;
use crate::error::ErrorKind;

fn table() -> SchemaRef {
    schema([
        optional(1, "id", primitive(PrimitiveType::Long)),
        optional(2, "name", primitive(PrimitiveType::String)),
    ])
}

fn intact() -> Vec<u8> {
    let names = (0..60).map(|row| format!("name {}", row % 13));
    let columns: [(i32, &str, ArrayRef); 2] = [
        (
            1,
            "id",
            Arc::new(Int64Array::from_iter_values((0..60).map(|v| v * v))),
        ),
        (2, "name", Arc::new(StringArray::from_iter_values(names))),
    ];
    parquet_of(&batch(columns), 25)
}

#[tokio::test]
async fn a_file_that_was_cut_is_an_error() {
    let files = Arc::new(Files::new());
    let intact = intact();
    for cut in 0..intact.len() {
        let location = format!("cut {cut}");
        let length = files.put(&location, intact[..cut].to_vec());
        // The manifest may tell the length that is there, or the one that was.
        for told in [length, intact.len() as u64] {
            let task = task(&location, told, 60);
            let error = error(&files, spec(&table(), &[1, 2]), task).await;
            let expected = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Read);
            assert!(
                expected && error.to_string().contains(&location),
                "{error:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_footer_that_claims_more_than_it_holds_is_an_error() {
    // Field 2, the schema, as a list of two thousand million structs; a group of as many children.
    let list = vec![0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07, 0];
    let group = vec![
        0x29, 0x1c, 0x48, 1, b'r', 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0,
    ];
    let files = Arc::new(Files::new());
    for (number, footer) in [list, group].into_iter().enumerate() {
        let length = u32::try_from(footer.len()).unwrap().to_le_bytes();
        let bytes = [b"PAR1", footer.as_slice(), &length, b"PAR1"].concat();
        let location = format!("claims {number}");
        let length = files.put(&location, bytes);
        let error = error(&files, spec(&table(), &[1, 2]), task(&location, length, 60)).await;
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("claims more"), "{error}");
    }
}

#[tokio::test]
async fn a_flipped_bit_is_an_error_or_harmless() {
    let files = Arc::new(Files::new());
    let intact = intact();
    let mut errors = 0;
    for at in 0..intact.len() {
        let location = format!("flipped {at}");
        let mut bytes = intact.clone();
        bytes[at] ^= 1 << (at % 8);
        let length = files.put(&location, bytes);
        let found = rows(
            &files,
            spec(&table(), &[1, 2]),
            vec![task(&location, length, 60)],
        )
        .await;
        match found {
            Ok(rows) => assert_eq!(rows.len(), 60),
            Err(error) => {
                errors += 1;
                assert!(error.to_string().contains(&location), "{error:?}");
            }
        }
    }
    assert!(errors > 50, "{errors} of {} were noticed", intact.len());
}

#[tokio::test]
async fn the_rows_before_a_damaged_group_come_then_the_error() {
    use futures::{StreamExt, stream};
    let files = Arc::new(Files::new());
    let mut bytes = intact();
    let footer = parquet::file::metadata::ParquetMetaDataReader::new()
        .parse_and_finish(&bytes::Bytes::from(bytes.clone()))
        .unwrap();
    let (start, length) = footer.row_group(1).column(0).byte_range();
    bytes[start as usize..(start + length) as usize].fill(0xFF);
    let length = files.put("f", bytes);
    let reader = super::super::RowReader::new(files.clone(), spec(&table(), &[1]));
    let batches = reader.read(stream::iter([Ok(task("f", length, 60))]));
    let batches: Vec<_> = batches.take(2).collect().await;
    assert_eq!(batches[0].as_ref().unwrap().num_rows(), 25);
    assert_eq!(batches[1].as_ref().unwrap_err().kind(), ErrorKind::Corrupt);
}
