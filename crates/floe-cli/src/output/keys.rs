//! JSON's objects have text for keys: those of other maps, such as a metadata table's maps by field id, become text.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

/// The batch with text for the keys of every map; the batch itself if it has no others.
pub(super) fn as_text(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema_ref();
    let fields = of_fields(schema.fields());
    if fields == *schema.fields() {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().zip(&fields);
    let columns = columns.map(
        |(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()),
        },
    );
    let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>();
    let columns = columns.context("can't write the keys of a map as text")?;
    let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
    RecordBatch::try_new(Arc::new(schema), columns).context("can't write the keys of a map as text")
}

fn of_fields(fields: &Fields) -> Fields {
    fields.iter().map(of_field).collect()
}

fn of_field(field: &FieldRef) -> FieldRef {
    let kind = of_type(field.data_type());
    match kind == *field.data_type() {
        true => field.clone(),
        false => Arc::new(Field::clone(field).with_data_type(kind)),
    }
}

fn of_type(kind: &DataType) -> DataType {
    match kind {
        DataType::Struct(fields) => DataType::Struct(of_fields(fields)),
        DataType::List(item) => DataType::List(of_field(item)),
        DataType::LargeList(item) => DataType::LargeList(of_field(item)),
        DataType::Map(pairs, sorted) => DataType::Map(of_pairs(pairs), *sorted),
        other => other.clone(),
    }
}

fn of_pairs(pairs: &FieldRef) -> FieldRef {
    let DataType::Struct(pair) = pairs.data_type() else {
        return pairs.clone();
    };
    let [key, value] = &pair[..] else {
        return pairs.clone();
    };
    let key = match key.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => key.clone(),
        _ => Arc::new(Field::clone(key).with_data_type(DataType::Utf8)),
    };
    let pair = DataType::Struct([key, of_field(value)].into_iter().collect());
    Arc::new(Field::clone(pairs).with_data_type(pair))
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{Int32Builder, Int64Builder, MapBuilder};
    use arrow_array::{Array, Int64Array, StructArray};

    use super::*;

    fn maps() -> ArrayRef {
        let mut maps = MapBuilder::new(None, Int32Builder::new(), Int64Builder::new());
        maps.keys().append_value(3);
        maps.values().append_value(30);
        maps.append(true).unwrap();
        maps.append(false).unwrap();
        Arc::new(maps.finish())
    }

    fn json(batch: &RecordBatch) -> String {
        let mut writer = arrow_json::ArrayWriter::new(Vec::new());
        writer.write(&as_text(batch).unwrap()).unwrap();
        writer.finish().unwrap();
        String::from_utf8(writer.into_inner()).unwrap()
    }

    #[test]
    fn maps_by_number_are_written_wherever_they_are() {
        let within = Field::new("m", maps().data_type().clone(), true);
        let within = StructArray::new(Fields::from(vec![within]), vec![maps()], None);
        let columns: [(&str, ArrayRef); 2] = [("top", maps()), ("within", Arc::new(within))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(
            json(&batch),
            r#"[{"top":{"3":30},"within":{"m":{"3":30}}},{"within":{}}]"#
        );
    }

    #[test]
    fn what_has_no_such_map_stays_as_it_is() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        assert_eq!(as_text(&batch).unwrap(), batch);
    }
}
