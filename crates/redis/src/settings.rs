//! Settings of a store: fields beside its id, on which all servers must agree.
//!
//! A field is a name and a text here; its readers know the meaning.

use crate::line::RedisCommand;
use crate::resp::{RespValue, Words};
use crate::scripts::SettingsCall;
use crate::store::{RedisStore, StoreError};

impl RedisStore {
    /// The texts of these fields, `None` for each missing one; `None` overall if there is no store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached, or another program wrote the key.
    pub fn settings(&self, fields: &[&str]) -> Result<Option<Vec<Option<String>>>, StoreError> {
        let key = self.keys().store();
        let words = Words::of(&["HMGET", &key, "id"]);
        let words = fields.iter().fold(words, |words, field| words.and(field));
        let said = self.ask(RedisCommand::Plain(words))?;
        match said.list() {
            Some([RespValue::Nil, ..]) => Ok(None),
            Some([_, texts @ ..]) if texts.len() == fields.len() => {
                Ok(Some(texts.iter().map(|text| text.text().map(str::to_owned)).collect()))
            }
            _ => Err(StoreError::Strange { key: "store" }),
        }
    }

    /// Writes these fields, also when Redis is full. Returns false, and writes nothing, if there is no store. Blocks.
    ///
    /// # Errors
    /// Redis cannot be reached; the write may have happened.
    pub fn set(&self, fields: &[(&str, String)]) -> Result<bool, StoreError> {
        self.write_settings(&SettingsCall { fields, fills_in: false })
    }

    /// The same for fields that do not exist yet.
    ///
    /// # Errors
    /// As [`RedisStore::set`].
    pub fn fill_in(&self, fields: &[(&str, String)]) -> Result<bool, StoreError> {
        self.write_settings(&SettingsCall { fields, fills_in: true })
    }

    fn write_settings(&self, call: &SettingsCall<'_>) -> Result<bool, StoreError> {
        let said = self.ask(RedisCommand::Script(call.call(self.keys())))?;
        Ok(said.text() == Some("done"))
    }
}
