//! Constants that a file gives to a protocol, read and described by the protocol's table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use hopwise_mesh::aodv::Key;
use hopwise_mesh::constants::{Constant, Constants, Form, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::located::{Document, Refusal, YamlPath};
use crate::units::Time;

/// Constants of one protocol; those that are not given have their defaults.
#[derive(Clone, Debug)]
pub struct Given<C> {
    values: BTreeMap<&'static str, Value>,
    of: PhantomData<C>,
}

impl<C> Default for Given<C> {
    fn default() -> Given<C> {
        Given { values: BTreeMap::new(), of: PhantomData }
    }
}

impl<C: Constants> Given<C> {
    /// Returns whether the file gives this constant.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// True if the file switches this constant on.
    pub fn is_on(&self, name: &str) -> bool {
        self.values.get(name) == Some(&Value::Switch(true))
    }

    /// The same with this value, unless the file gives another one.
    pub(super) fn or(mut self, (name, value): (&'static str, Value)) -> Given<C> {
        self.values.entry(name).or_insert(value);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The settings in force over these defaults; `at` is where the constants stand.
    pub fn over(&self, mut settings: C, document: &Document, at: &YamlPath) -> Result<C, Box<Refusal>> {
        // A key signs the additions of `ack_seq` to messages, and nothing else.
        if self.has("key") && !self.is_on("ack_seq") {
            let accepted = "ack_seq: true beside it, whose messages it signs";
            return Err(document.refuse_key(&at.key("key"), "`key` changes nothing here", accepted));
        }
        self.values.iter().for_each(|(name, value)| settings.set(name, *value));
        Ok(settings)
    }

    /// The constants in force over these defaults, as far as they are used.
    pub(super) fn filled(&self, mut settings: C, is_used: impl Fn(&str) -> bool) -> Given<C> {
        self.values.iter().for_each(|(name, value)| settings.set(name, *value));
        let used = C::TABLE.iter().filter(|constant| is_used(constant.name) || self.has(constant.name));
        let values = used.filter_map(|constant| Some((constant.name, settings.get(constant.name)?)));
        Given { values: values.collect(), of: PhantomData }
    }

    /// Reads the value of one constant.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        constant: &'static Constant,
        map: &mut A,
    ) -> Result<(), A::Error> {
        if let Some(value) = map.next_value_seed(Wanted(constant))? {
            self.values.insert(constant.name, value);
        }
        Ok(())
    }

    /// Writes the given constants, but no key.
    pub(super) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for (name, value) in &self.values {
            if let Some(value) = written(*value) {
                map.serialize_entry(name, &value)?;
            }
        }
        Ok(())
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        C::TABLE.iter().map(|constant| constant.name)
    }

    /// A schema for each constant.
    pub(super) fn properties(generator: &mut SchemaGenerator) -> impl Iterator<Item = (String, Json)> {
        C::TABLE.iter().map(|constant| (constant.name.to_owned(), schema_of(constant, generator).to_value()))
    }
}

impl<'de, C: Constants> Deserialize<'de> for Given<C> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Given<C>, D::Error> {
        struct Section<C>(PhantomData<C>);

        impl<'de, C: Constants> Visitor<'de> for Section<C> {
            type Value = Given<C>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("keys with values, such as { key: value }")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Given<C>, E> {
                Ok(Given::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given<C>, A::Error> {
                let mut given = Given::default();
                let find = |name: &str| C::constant(name).ok_or_else(|| Given::<C>::names().collect());
                while let Some(constant) = map.next_key_seed(Named(find))? {
                    given.read(constant, &mut map)?;
                }
                Ok(given)
            }
        }

        from.deserialize_any(Section(PhantomData))
    }
}

impl<C: Constants> Serialize for Given<C> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

impl<C: Constants> JsonSchema for Given<C> {
    fn schema_name() -> Cow<'static, str> {
        C::PROTOCOL.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let properties: serde_json::Map<_, _> = Given::<C>::properties(generator).collect();
        json_schema!({
            "description": C::DOC,
            "type": ["object", "null"],
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// The value as files have it; keys are never written.
fn written(value: Value) -> Option<Json> {
    Some(match value {
        Value::Time(time) => serde_json::to_value(Time(time)).ok()?,
        Value::Count(count) => count.into(),
        Value::Switch(is_on) => is_on.into(),
        Value::Choice(name) => name.into(),
        Value::Key(_) => return None,
    })
}

fn schema_of(constant: &Constant, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = match constant.form {
        Form::Time { .. } => generator.subschema_for::<Option<Time>>(),
        Form::Count { min, max, .. } => {
            json_schema!({ "type": ["integer", "null"], "minimum": min, "maximum": max })
        }
        Form::Switch => json_schema!({ "type": ["boolean", "null"] }),
        Form::Choice(names) => {
            let name = |(name, doc): &(&str, &str)| json_schema!({ "const": name, "description": doc });
            json_schema!({ "oneOf": names.iter().map(name).collect::<Vec<_>>() })
        }
        Form::Key => json_schema!({ "type": ["string", "null"], "writeOnly": true }),
    };
    match constant.form {
        Form::Time { min } => {
            schema.insert("x-range".to_owned(), format!("{} to 1h", Value::Time(min)).into());
        }
        Form::Count { unit, min, max } => {
            let range = if max == u32::MAX { format!("{min} or more") } else { format!("{min} to {max}") };
            schema.insert("x-range".to_owned(), range.into());
            schema.insert("x-unit".to_owned(), unit.into());
        }
        Form::Switch | Form::Choice(_) | Form::Key => {}
    }
    schema.insert("description".to_owned(), constant.to_string().into());
    if let (Some(default), None) = (constant.default.and_then(written), constant.ns2) {
        schema.insert("default".to_owned(), default);
    }
    schema
}

/// Reads a key by its name; if there is none, the function returns all names.
pub(super) struct Named<F>(pub(super) F);

impl<'de, K, F: FnOnce(&str) -> Result<K, Vec<&'static str>>> DeserializeSeed<'de> for Named<F> {
    type Value = K;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<K, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl<K, F: FnOnce(&str) -> Result<K, Vec<&'static str>>> Visitor<'_> for Named<F> {
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
struct Wanted(&'static Constant);

impl Wanted {
    fn checked<E: de::Error>(&self, value: Option<Value>) -> Result<Option<Value>, E> {
        let Constant { name, form, .. } = self.0;
        match value.filter(|value| form.accepts(*value)) {
            None => Err(E::custom(format_args!("{name} is out of bounds, expected {form}"))),
            accepted => Ok(accepted),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Wanted {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Option<Value>, D::Error> {
        from.deserialize_any(self)
    }
}

impl Visitor<'_> for Wanted {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.form, f)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, is_on: bool) -> Result<Option<Value>, E> {
        match self.0.form {
            Form::Switch => Ok(Some(Value::Switch(is_on))),
            _ => Err(E::invalid_type(Unexpected::Bool(is_on), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Option<Value>, E> {
        match self.0.form {
            Form::Count { .. } => self.checked(number.try_into().ok().map(Value::Count)),
            Form::Time { .. } => self.visit_str(&number.to_string()),
            _ => Err(E::invalid_type(Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Option<Value>, E> {
        match self.0.form {
            Form::Count { .. } => self.checked(number.try_into().ok().map(Value::Count)),
            Form::Time { .. } => self.visit_str(&number.to_string()),
            _ => Err(E::invalid_type(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Option<Value>, E> {
        match self.0.form {
            Form::Time { .. } => self.visit_str(&number.to_string()),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Value>, E> {
        match self.0.form {
            Form::Time { .. } => self.checked(Some(Value::Time(text.parse::<Time>().map_err(E::custom)?.0))),
            Form::Choice(names) => match names.iter().find(|(name, _)| *name == text) {
                Some((name, _)) => Ok(Some(Value::Choice(name))),
                None => Err(E::custom(format_args!("unknown variant `{text}`, expected {}", self.0.form))),
            },
            Form::Key if text.trim().is_empty() => {
                Err(E::custom(format_args!("the key is empty, expected {}", self.0.form)))
            }
            Form::Key => Ok(Some(Value::Key(Key::new(Sha256::digest(text.as_bytes()).into())))),
            Form::Count { .. } | Form::Switch => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }
}
