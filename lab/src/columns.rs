//! Records as columns of one file in Parquet's format, for readers of many of them.
//!
//! It has the columns of `records.csv`; a figure that a run does not have is null. Equal records give equal bytes.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type as Field;

use super::metric::METRICS;
use super::record::Record;

enum ColumnValues {
    Texts(Vec<String>),
    Counts(Vec<u64>),
    Figures(Vec<Option<f64>>),
}

struct ParquetColumn {
    name: String,
    values: ColumnValues,
}

/// The whole file; `paths` vary by point or by arm.
pub(super) fn file(records: &[Record], paths: &[&str]) -> Result<Vec<u8>, ParquetError> {
    let columns = columns(records, paths);
    let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Field::group_type_builder("records").with_fields(fields).build()?);
    let properties = Arc::new(WriterProperties::builder().set_created_by("hopwise".to_owned()).build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        column.values.write(&mut writer)?;
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn columns(records: &[Record], paths: &[&str]) -> Vec<ParquetColumn> {
    let texts = |name: &str, of: &dyn Fn(&Record) -> String| ParquetColumn {
        name: name.to_owned(),
        values: ColumnValues::Texts(records.iter().map(of).collect()),
    };
    let counts = |name: &str, of: &dyn Fn(&Record) -> u64| ParquetColumn {
        name: name.to_owned(),
        values: ColumnValues::Counts(records.iter().map(of).collect()),
    };
    let figures = |name: &str, of: &dyn Fn(&Record) -> Option<f64>| ParquetColumn {
        name: name.to_owned(),
        values: ColumnValues::Figures(records.iter().map(of).collect()),
    };
    let mut columns =
        vec![texts("id", &|record| record.id.clone()), texts("scenario", &|r| r.scenario.clone())];
    columns.extend(paths.iter().map(|path| texts(path, &|r| r.varied(path).unwrap_or_default())));
    columns.push(texts("arm", &|record| record.arm.clone()));
    columns.push(counts("seed", &|record| record.seed));
    columns.push(counts("block", &|record| record.block.into()));
    columns.push(figures("counted_s", &|record| Some(record.result.counted_s)));
    columns.extend(METRICS.iter().map(|metric| figures(metric.name, &|record| (metric.of)(&record.result))));
    columns
}

impl ParquetColumn {
    fn field(&self) -> Result<Field, ParquetError> {
        let (kind, logical, repetition) = match self.values {
            ColumnValues::Texts(_) => (Type::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED),
            ColumnValues::Counts(_) => (Type::INT64, None, Repetition::REQUIRED),
            ColumnValues::Figures(_) => (Type::DOUBLE, None, Repetition::OPTIONAL),
        };
        Field::primitive_type_builder(&self.name, kind)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

impl ColumnValues {
    fn write(&self, to: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            ColumnValues::Texts(texts) => {
                let bytes: Vec<_> = texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
                to.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
            }
            ColumnValues::Counts(counts) => {
                let signed: Vec<_> = counts.iter().map(|count| count.cast_signed()).collect();
                to.typed::<Int64Type>().write_batch(&signed, None, None)?;
            }
            ColumnValues::Figures(figures) => {
                let there: Vec<_> = figures.iter().flatten().copied().collect();
                let levels: Vec<_> = figures.iter().map(|figure| i16::from(figure.is_some())).collect();
                to.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::report::tests::record;

    #[test]
    fn what_is_written_is_read_back_as_it_was() {
        let records: Vec<_> = (1..=3).map(|block| record(8, "dca", block, f64::from(block) / 3.0)).collect();
        let written = file(&records, &["topology.hops"]).expect("a file");
        assert!(
            written == file(&records, &["topology.hops"]).expect("a file"),
            "the same records, the same bytes"
        );
        let path = std::env::temp_dir().join(format!("hopwise-columns-{}.parquet", std::process::id()));
        std::fs::write(&path, &written).expect("it is written");
        let reader = SerializedFileReader::new(std::fs::File::open(&path).expect("a file")).expect("Parquet");
        let _ = std::fs::remove_file(&path);
        let names: Vec<_> = reader
            .metadata()
            .file_metadata()
            .schema()
            .get_fields()
            .iter()
            .map(|f| f.name().to_owned())
            .collect();
        let header = crate::record::csv_header(&["topology.hops"]);
        assert_eq!(names.join(","), header.trim_end(), "the columns of records.csv");
        let place = |name: &str| names.iter().position(|known| known == name).expect("a column");
        let mut rows = 0;
        for (row, record) in reader.get_row_iter(None).expect("rows").zip(&records) {
            let row = row.expect("a row");
            assert_eq!(row.get_string(place("id")).ok(), Some(&record.id));
            assert_eq!(row.get_string(place("topology.hops")).ok().map(String::as_str), Some("8"));
            assert_eq!(row.get_long(place("seed")).ok(), Some(record.seed as i64));
            assert_eq!(row.get_double(place("goodput_kbps")).ok(), Some(record.result.total.goodput_kbps));
            assert!(row.get_double(place("completion_s")).is_err(), "what a run does not have is null");
            rows += 1;
        }
        assert_eq!(rows, 3);
    }
}
