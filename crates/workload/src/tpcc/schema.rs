//! TPC-C's nine tables (clause 1.3), their keys, and the indexes that the transactions need.
//!
//! Owns their definitions. Keys and indexes are made after loading.

/// Tables with their columns, in the order they are made.
pub(super) const TABLES: [(&str, &str); 9] = [
    (
        "warehouse",
        "w_id int, w_name varchar(10), w_street_1 varchar(20), w_street_2 varchar(20), w_city varchar(20), \
         w_state char(2), w_zip char(9), w_tax numeric(4,4), w_ytd numeric(12,2)",
    ),
    (
        "district",
        "d_id int, d_w_id int, d_name varchar(10), d_street_1 varchar(20), d_street_2 varchar(20), \
         d_city varchar(20), d_state char(2), d_zip char(9), d_tax numeric(4,4), d_ytd numeric(12,2), \
         d_next_o_id int",
    ),
    (
        "customer",
        "c_id int, c_d_id int, c_w_id int, c_first varchar(16), c_middle char(2), c_last varchar(16), \
         c_street_1 varchar(20), c_street_2 varchar(20), c_city varchar(20), c_state char(2), c_zip char(9), \
         c_phone char(16), c_since timestamp, c_credit char(2), c_credit_lim numeric(12,2), \
         c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt int, \
         c_delivery_cnt int, c_data varchar(500)",
    ),
    (
        "history",
        "h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, \
         h_amount numeric(6,2), h_data varchar(24)",
    ),
    ("new_order", "no_o_id int, no_d_id int, no_w_id int"),
    (
        "orders",
        "o_id int, o_d_id int, o_w_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, \
         o_all_local int",
    ),
    (
        "order_line",
        "ol_o_id int, ol_d_id int, ol_w_id int, ol_number int, ol_i_id int, ol_supply_w_id int, \
         ol_delivery_d timestamp, ol_quantity int, ol_amount numeric(6,2), ol_dist_info char(24)",
    ),
    ("item", "i_id int, i_im_id int, i_name varchar(24), i_price numeric(5,2), i_data varchar(50)"),
    (
        "stock",
        "s_i_id int, s_w_id int, s_quantity int, s_dist_01 char(24), s_dist_02 char(24), s_dist_03 char(24), \
         s_dist_04 char(24), s_dist_05 char(24), s_dist_06 char(24), s_dist_07 char(24), s_dist_08 char(24), \
         s_dist_09 char(24), s_dist_10 char(24), s_ytd int, s_order_cnt int, s_remote_cnt int, s_data varchar(50)",
    ),
];

/// What is made of each table after loading, the longest work first.
pub(super) const FINISHING: [&str; 9] = [
    "ALTER TABLE order_line ADD PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    "ALTER TABLE stock ADD PRIMARY KEY (s_w_id, s_i_id)",
    "ALTER TABLE customer ADD PRIMARY KEY (c_w_id, c_d_id, c_id); \
     CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "ALTER TABLE orders ADD PRIMARY KEY (o_w_id, o_d_id, o_id); \
     CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
    "ALTER TABLE item ADD PRIMARY KEY (i_id)",
    "ALTER TABLE new_order ADD PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    "ALTER TABLE district ADD PRIMARY KEY (d_w_id, d_id)",
    "ALTER TABLE warehouse ADD PRIMARY KEY (w_id)",
    // Clause 1.4.2 has no key for the history.
    "ANALYZE history",
];

/// The table that a step of [`FINISHING`] is about.
pub(super) fn table_of(step: &str) -> &str {
    let words = step.strip_prefix("ALTER TABLE ").or_else(|| step.strip_prefix("ANALYZE "));
    words.and_then(|words| words.split(' ').next()).unwrap_or(step)
}

/// Creates the tables, throwing away what was there.
pub(super) fn creation() -> String {
    let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    let mut sql = format!("DROP TABLE IF EXISTS {};", names.join(", "));
    for (name, columns) in TABLES {
        // The few rows that every transaction updates get room to be updated in their own page.
        let storage = if matches!(name, "warehouse" | "district") { " WITH (fillfactor = 10)" } else { "" };
        sql.push_str(&format!(" CREATE TABLE {name} ({columns}){storage};"));
    }
    sql
}
