//! TPC-C's nine tables (clause 1.3), their keys, and the indexes that the transactions need.
//!
//! Owns their definitions. PostgreSQL's get keys and indexes after loading; databases that lay out a table by its key have the
//! key from the beginning.

use client::{Dialect, SqlSession};

/// How a database has its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Rows as they come; the key is an index, made after loading.
    Heap,
    /// Rows by their key.
    ByKey,
    /// The same in MySQL's SQL. Each table has a key: Galera replicates no other.
    ByKeyInMysql,
}

impl Layout {
    pub(super) fn of(session: &(dyn SqlSession + '_)) -> Self {
        match session.dialect() {
            Dialect::Mysql => Layout::ByKeyInMysql,
            _ if session.keeps_dead_rows() => Layout::Heap,
            _ => Layout::ByKey,
        }
    }
}

pub(super) struct Table {
    pub(super) name: &'static str,
    columns: &'static str,
    /// The columns of its primary key; clause 1.4.2 has none for the history.
    key: &'static str,
    /// The name of one more index and its columns, where there is one.
    index: Option<(&'static str, &'static str)>,
}

/// All of them, the one that is the longest work after loading first.
pub(super) static TABLES: [&Table; 9] =
    [&ORDER_LINE, &STOCK, &CUSTOMER, &ORDERS, &ITEM, &NEW_ORDER, &DISTRICT, &WAREHOUSE, &HISTORY];

pub(super) static ORDER_LINE: Table = Table {
    name: "order_line",
    columns: "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, \
     ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2), ol_dist_info char(24)",
    key: "ol_w_id, ol_d_id, ol_o_id, ol_number",
    index: None,
};

pub(super) static STOCK: Table = Table {
    name: "stock",
    columns: "s_i_id int, s_w_id int, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
     s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
     s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50)",
    key: "s_w_id, s_i_id",
    index: None,
};

pub(super) static CUSTOMER: Table = Table {
    name: "customer",
    columns: "c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), c_last varchar(16), \
     c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
     c_phone char(16), c_since timestamp, c_credit char(2), c_credit_lim numeric(12,2), \
     c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, \
     c_delivery_cnt int, c_data varchar(500)",
    key: "c_w_id, c_d_id, c_id",
    index: Some(("customer_by_name", "c_w_id, c_d_id, c_last, c_first")),
};

pub(super) static ORDERS: Table = Table {
    name: "orders",
    columns: "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, \
     o_all_local int",
    key: "o_w_id, o_d_id, o_id",
    index: Some(("orders_by_customer", "o_w_id, o_d_id, o_c_id, o_id")),
};

pub(super) static ITEM: Table = Table {
    name: "item",
    columns: "i_id int, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50)",
    key: "i_id",
    index: None,
};

pub(super) static NEW_ORDER: Table = Table {
    name: "new_order",
    columns: "no_o_id int, no_d_id int, no_w_id int",
    key: "no_w_id, no_d_id, no_o_id",
    index: None,
};

pub(super) static DISTRICT: Table = Table {
    name: "district",
    columns: "d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), \
     d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), \
     d_next_o_id int",
    key: "d_w_id, d_id",
    index: None,
};

pub(super) static WAREHOUSE: Table = Table {
    name: "warehouse",
    columns: "w_id int, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), \
     w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2)",
    key: "w_id",
    index: None,
};

pub(super) static HISTORY: Table = Table {
    name: "history",
    columns: "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, \
     h_amount numeric(6,2), h_data varchar(24)",
    key: "",
    index: None,
};

impl Table {
    /// Makes the table, throwing away what was there: with its key, or for a key that is made after loading.
    pub(super) fn creation(&self, layout: Layout) -> [String; 2] {
        let Table { name, key, .. } = self;
        let key = match (layout, *key) {
            (Layout::Heap, _) | (Layout::ByKey, "") => String::new(),
            (Layout::ByKeyInMysql, "") => ", id bigint AUTO_INCREMENT PRIMARY KEY".to_owned(),
            (Layout::ByKey | Layout::ByKeyInMysql, key) => format!(", PRIMARY KEY ({key})"),
        };
        let columns = match layout {
            // Its timestamps may change by themselves, and end in 2038.
            Layout::ByKeyInMysql => self.columns.replace(" timestamp", " datetime"),
            Layout::Heap | Layout::ByKey => self.columns.to_owned(),
        };
        // The few rows that every transaction updates get room to be updated in their own page.
        let is_hot = matches!(*name, "warehouse" | "district");
        let storage = if is_hot && layout == Layout::Heap { " WITH (fillfactor = 10)" } else { "" };
        [format!("DROP TABLE IF EXISTS {name}"), format!("CREATE TABLE {name} ({columns}{key}){storage}")]
    }

    /// The columns that are loaded, `a, b`.
    pub(super) fn loaded_columns(&self) -> String {
        let names = self.columns.split(", ").filter_map(|column| column.split(' ').next());
        names.collect::<Vec<_>>().join(", ")
    }

    /// What is made of the loaded table: its key, unless it has it, and its index.
    pub(super) fn finishing(&self, layout: Layout) -> Vec<String> {
        let Table { name, key, index, .. } = self;
        let makes_key = layout == Layout::Heap && !key.is_empty();
        let key = makes_key.then(|| format!("ALTER TABLE {name} ADD PRIMARY KEY ({key})"));
        let index = index.map(|(index, columns)| format!("CREATE INDEX {index} ON {name} ({columns})"));
        key.into_iter().chain(index).collect()
    }
}
