//! Constants that a file gives to a protocol, read and described by the protocol's table.

use std::collections::BTreeMap;
use std::fmt;

use hopwise_mesh::RoutingProtocol;
use hopwise_mesh::aodv::Key;
use hopwise_mesh::constants::{Constant, ConstantForm, ConstantValue, ConstantValues};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Unexpected, Visitor};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::units::Time;

/// Reads the value of one constant.
pub(super) fn read<'de, A: MapAccess<'de>>(
    given: &mut ConstantValues,
    constant: &'static Constant,
    map: &mut A,
) -> Result<(), A::Error> {
    if let Some(value) = map.next_value_seed(WantedConstant(constant))? {
        given.set(constant.name, value);
    }
    Ok(())
}

/// The given constants as files have them, but no key.
pub(super) fn written(given: &ConstantValues) -> BTreeMap<&'static str, Json> {
    given.iter().filter_map(|(name, value)| Some((name, json(value)?))).collect()
}

/// A schema for each constant.
pub(super) fn properties(
    protocol: &RoutingProtocol,
    generator: &mut SchemaGenerator,
) -> serde_json::Map<String, Json> {
    let of = |constant: &Constant| (constant.name.to_owned(), schema_of(constant, generator).to_value());
    protocol.constants.iter().map(of).collect()
}

/// The schema of a protocol's own section.
pub(super) fn section_schema(protocol: &RoutingProtocol, generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": format!("Constants of {} (protocol: {}).", protocol.subject, protocol.name),
        "type": ["object", "null"],
        "default": {},
        "properties": properties(protocol, generator),
        "additionalProperties": false,
    })
}

/// Reads the section of a protocol.
pub(super) struct Section(pub(super) &'static RoutingProtocol);

impl<'de> DeserializeSeed<'de> for Section {
    type Value = ConstantValues;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<ConstantValues, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Section {
    type Value = ConstantValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys with values, such as { key: value }")
    }

    fn visit_unit<E: de::Error>(self) -> Result<ConstantValues, E> {
        Ok(ConstantValues::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ConstantValues, A::Error> {
        let Section(protocol) = self;
        let mut given = ConstantValues::default();
        let names = || protocol.constants.iter().map(|constant| constant.name).collect();
        let find = |name: &str| protocol.constant(name).ok_or_else(names);
        while let Some(constant) = map.next_key_seed(NamedKey(find))? {
            read(&mut given, constant, &mut map)?;
        }
        Ok(given)
    }
}

/// The value as files have it; keys are never written.
fn json(value: ConstantValue) -> Option<Json> {
    Some(match value {
        ConstantValue::Time(time) => serde_json::to_value(Time(time)).ok()?,
        ConstantValue::Count(count) => count.into(),
        ConstantValue::Switch(is_on) => is_on.into(),
        ConstantValue::Choice(name) => name.into(),
        ConstantValue::Key(_) => return None,
    })
}

fn schema_of(constant: &Constant, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = match constant.form {
        ConstantForm::Time { .. } => generator.subschema_for::<Option<Time>>(),
        ConstantForm::Count { min, max, .. } => {
            json_schema!({ "type": ["integer", "null"], "minimum": min, "maximum": max })
        }
        ConstantForm::Switch => json_schema!({ "type": ["boolean", "null"] }),
        ConstantForm::Choice(names) => {
            let name = |(name, doc): &(&str, &str)| json_schema!({ "const": name, "description": doc });
            json_schema!({ "oneOf": names.iter().map(name).collect::<Vec<_>>() })
        }
        ConstantForm::Key => json_schema!({ "type": ["string", "null"], "writeOnly": true }),
    };
    match constant.form {
        ConstantForm::Time { min } => {
            schema.insert("x-range".to_owned(), format!("{} to 1h", ConstantValue::Time(min)).into());
        }
        ConstantForm::Count { unit, min, max } => {
            let range = if max == u32::MAX { format!("{min} or more") } else { format!("{min} to {max}") };
            schema.insert("x-range".to_owned(), range.into());
            schema.insert("x-unit".to_owned(), unit.into());
        }
        ConstantForm::Switch | ConstantForm::Choice(_) | ConstantForm::Key => {}
    }
    schema.insert("description".to_owned(), constant.to_string().into());
    if let (Some(default), None) = (constant.default.and_then(json), constant.ns2) {
        schema.insert("default".to_owned(), default);
    }
    schema
}

/// Reads a key by its name; if there is none, the function returns all names.
pub(super) struct NamedKey<F>(pub(super) F);

impl<'de, K, F: FnOnce(&str) -> Result<K, Vec<&'static str>>> DeserializeSeed<'de> for NamedKey<F> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<K, F: FnOnce(&str) -> Result<K, Vec<&'static str>>> Visitor<'_> for NamedKey<F> {
    type Value = K;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a key")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<K, E> {
        self.0(name).map_err(|names| {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            E::custom(format_args!("unknown field `{name}`, expected one of {}", names.join(", ")))
        })
    }
}

/// Reads the value of a constant; none for `null` in the file.
struct WantedConstant(&'static Constant);

impl WantedConstant {
    fn checked<E: de::Error>(&self, value: Option<ConstantValue>) -> Result<Option<ConstantValue>, E> {
        let Constant { name, form, .. } = self.0;
        match value.filter(|value| form.accepts(*value)) {
            None => Err(E::custom(format_args!("{name} is out of bounds, expected {form}"))),
            accepted => Ok(accepted),
        }
    }

    fn whole<E: de::Error>(
        self,
        number: impl TryInto<u32> + ToString,
        found: Unexpected<'_>,
    ) -> Result<Option<ConstantValue>, E> {
        match self.0.form {
            ConstantForm::Count { .. } => self.checked(number.try_into().ok().map(ConstantValue::Count)),
            ConstantForm::Time { .. } => self.visit_str(&number.to_string()),
            _ => Err(E::invalid_type(found, &self)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for WantedConstant {
    type Value = Option<ConstantValue>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<ConstantValue>, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for WantedConstant {
    type Value = Option<ConstantValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.form, f)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<ConstantValue>, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<Option<ConstantValue>, E> {
        match self.0.form {
            ConstantForm::Switch => Ok(Some(ConstantValue::Switch(is_on))),
            _ => Err(E::invalid_type(Unexpected::Bool(is_on), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<ConstantValue>, E> {
        self.whole(number, Unexpected::Unsigned(number))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<ConstantValue>, E> {
        self.whole(number, Unexpected::Signed(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<ConstantValue>, E> {
        match self.0.form {
            ConstantForm::Time { .. } => self.visit_str(&number.to_string()),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<ConstantValue>, E> {
        match self.0.form {
            ConstantForm::Time { .. } => {
                self.checked(Some(ConstantValue::Time(text.parse::<Time>().map_err(E::custom)?.0)))
            }
            ConstantForm::Choice(names) => match names.iter().find(|(name, _)| *name == text) {
                Some((name, _)) => Ok(Some(ConstantValue::Choice(name))),
                None => Err(E::custom(format_args!("unknown variant `{text}`, expected {}", self.0.form))),
            },
            ConstantForm::Key if text.trim().is_empty() => {
                Err(E::custom(format_args!("the key is empty, expected {}", self.0.form)))
            }
            ConstantForm::Key => {
                Ok(Some(ConstantValue::Key(Key::new(Sha256::digest(text.as_bytes()).into()))))
            }
            ConstantForm::Count { .. } | ConstantForm::Switch => {
                Err(E::invalid_type(Unexpected::Str(text), &self))
            }
        }
    }
}
