/**
 * A client program for any JDBC driver: one thread for each session.
 *
 * It speaks the protocol of docs/guide/client-programs.md over its standard input and output. It needs Java 17 or newer and the
 * driver's jars. What it owns: which errors are definite, and how statements, parameters and rows are put to a driver.
 */

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLRecoverableException;
import java.sql.SQLTimeoutException;
import java.sql.SQLTransactionRollbackException;
import java.sql.SQLTransientConnectionException;
import java.sql.SQLWarning;
import java.sql.Types;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;

final class Client {
    static final long VERSION = 1;

    private Client() {}

    public static void main(String[] arguments) throws IOException {
        Output output = new Output();
        Map<Long, Session> sessions = new ConcurrentHashMap<>();
        InputStream input = new BufferedInputStream(System.in, 1 << 16);
        for (byte[] line = readLine(input); line != null; line = readLine(input)) {
            Map<String, Object> message = Json.object(Json.read(new String(line, StandardCharsets.UTF_8)));
            if (message.containsKey("hello")) {
                output.say(greeting(message));
            } else if (message.containsKey("close")) {
                Session session = sessions.remove((Long) message.get("session"));
                if (session != null) {
                    session.close();
                }
            } else {
                Session session = sessions.computeIfAbsent((Long) message.get("session"), number -> {
                    Session fresh = new Session(output);
                    fresh.start();
                    return fresh;
                });
                session.asked.add(message);
            }
        }
        // Connections end with the process, whatever they are doing.
        Runtime.getRuntime().halt(0);
    }

    /** A line without its end; null at the end of all. */
    private static byte[] readLine(InputStream input) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = input.read(); next >= 0; next = input.read()) {
            if (next == '\n') {
                return line.toByteArray();
            }
            line.write(next);
        }
        return null;
    }

    /** Whether the driver can be had. Without a name the URL finds it. */
    private static Map<String, Object> greeting(Map<String, Object> message) {
        Map<String, Object> hello = Json.object(message.get("hello"));
        try {
            if (!Long.valueOf(VERSION).equals(hello.get("protocol"))) {
                throw new ClassNotFoundException("this program speaks version " + VERSION + " of the protocol");
            }
            String driver = (String) hello.get("driver");
            if (!driver.isEmpty()) {
                Object made = Class.forName(driver).getDeclaredConstructor().newInstance();
                if (!(made instanceof Driver)) {
                    throw new ClassNotFoundException(driver + " is no JDBC driver");
                }
            }
            return Map.of("ask", message.get("ask"), "ok", Map.of("protocol", VERSION));
        } catch (ReflectiveOperationException | LinkageError error) {
            Map<String, Object> told = Map.of("class", "other", "text", Verdict.text(error));
            return Map.of("ask", message.get("ask"), "failed", told);
        }
    }
}

/** What an error says: its class, and whether it proves that nothing was committed. */
record Verdict(String kind, String code, boolean definite) {
    /*
     * By SQLSTATE. Source: ISO/IEC 9075-2, "Status codes"; PostgreSQL documentation, "PostgreSQL Error Codes" (Appendix A). These classes are
     * raised before a commit is recorded: feature not supported, cardinality, data, integrity, transaction state, rollback, syntax
     * or access, check option, PL/pgSQL. Not definite: 40003, which says itself that it does not know; of ODBC (Appendix A) 25S01
     * and 25S02, "transaction state unknown" and "is still active"; 25S03, with which MariaDB Connector/J says that it has connected
     * again after a COMMIT was not answered (3.x, MultiPrimaryClient); 08 (connection; 08007 is "transaction resolution unknown"),
     * 53, 57, 58, HY, XX, all others, and whatever a driver calls trouble of its connection.
     */
    private static final Set<String> DEFINITE = Set.of("0A", "21", "22", "23", "25", "40", "42", "44", "P0");
    private static final Set<String> INDEFINITE = Set.of("40003", "25S01", "25S02", "25S03");
    private static final Set<String> CONNECTION =
        Set.of("57P01", "57P02", "57P03", "57P04", "57P05", "53300");
    /*
     * By the number of MySQL and MariaDB, whose SQLSTATE often is HY000. Source: MariaDB documentation, "MariaDB Error Code Reference";
     * MySQL manual, "InnoDB Error Handling"; Galera documentation, "Certification-Based Replication".
     */
    private static final Map<Integer, String> NUMBERS = Map.of(
        1213, "serialization", 1205, "serialization", 1020, "serialization",
        1047, "read-only", 1290, "read-only", 1792, "read-only", 1836, "read-only");
    /*
     * ER_TRANSACTION_ROLLBACK_DURING_COMMIT: a failed certification, and what a member of Group Replication answers that cannot learn
     * what became of transactions which it had sent to the group. Source: MySQL, plugin/group_replication, plugin_utils.h.
     */
    private static final int ROLLBACK_DURING_COMMIT = 3101;

    static Verdict of(Throwable error, boolean isMysql) {
        if (!(error instanceof SQLException)) {
            return new Verdict("other", null, false);
        }
        SQLException sql = (SQLException) error;
        String state = sql.getSQLState() == null ? "" : sql.getSQLState();
        if (isMysql && NUMBERS.containsKey(sql.getErrorCode())) {
            return new Verdict(NUMBERS.get(sql.getErrorCode()), String.valueOf(sql.getErrorCode()), true);
        }
        if (isMysql && sql.getErrorCode() == ROLLBACK_DURING_COMMIT) {
            return new Verdict("serialization", String.valueOf(ROLLBACK_DURING_COMMIT), false);
        }
        // YugabyteDB asks for a commit again and finds a transaction "expired" that was committed the first time.
        boolean mayBeCommitted = state.startsWith("40") && String.valueOf(sql.getMessage()).contains("expired");
        boolean definite = !isOfConnection(sql) && state.length() == 5 && DEFINITE.contains(state.substring(0, 2))
            && !INDEFINITE.contains(state) && !mayBeCommitted;
        return new Verdict(kind(sql, state), state.isEmpty() ? null : state, definite);
    }

    /* JDBC 4.3, "SQLException" and its subclasses: recoverable and connection exceptions need a new connection. */
    private static boolean isOfConnection(SQLException error) {
        return error instanceof SQLRecoverableException
            || error instanceof SQLNonTransientConnectionException
            || error instanceof SQLTransientConnectionException;
    }

    private static String kind(SQLException error, String state) {
        if (error instanceof SQLTimeoutException) {
            return "timeout";
        }
        if (isOfConnection(error) || state.startsWith("08") || CONNECTION.contains(state)) {
            return "connection";
        }
        if (state.equals("40001") || state.equals("40P01")) {
            return "serialization";
        }
        if (error instanceof SQLTransactionRollbackException && !INDEFINITE.contains(state)) {
            return "serialization";
        }
        return state.equals("25006") ? "read-only" : "other";
    }

    static String text(Throwable error) {
        String said = error.getMessage() == null ? "" : error.getMessage().strip().replaceAll("\\s+", " ");
        boolean isSql = error instanceof SQLException && !said.isEmpty();
        return isSql ? said : (error.getClass().getSimpleName() + ": " + said);
    }
}

/** A commit was acknowledged with a warning. */
final class Doubtful extends Exception {
    private static final long serialVersionUID = 1;

    Doubtful(SQLWarning warning) {
        super("acknowledged with a warning: " + Verdict.text(warning));
    }
}

/** Lines to the load, one at a time. */
final class Output {
    private final OutputStream file = new FileOutputStream(FileDescriptor.out);

    Output() {
        // What a driver prints must not get among the answers.
        System.setOut(new PrintStream(new FileOutputStream(FileDescriptor.err), true));
    }

    void say(Map<String, Object> message) {
        StringBuilder text = new StringBuilder();
        Json.write(message, text);
        byte[] line = text.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        synchronized (this) {
            try {
                file.write(line);
            } catch (IOException error) {
                // Nobody listens any more.
                Runtime.getRuntime().halt(0);
            }
        }
    }
}

/** One connection, and what is asked of it one after the other. */
final class Session extends Thread {
    private static final Map<String, Object> END = Map.of();
    /** Of statements that are kept prepared; a workload has a few dozen. */
    private static final int MOST_PREPARED = 100;
    private static final int LONGEST_PREPARED = 4_096;

    final BlockingQueue<Map<String, Object>> asked = new LinkedBlockingQueue<>();
    private final Output output;
    private final Map<String, PreparedStatement> prepared = new LinkedHashMap<>();
    private volatile Connection connection;
    private volatile boolean isClosing;
    private boolean isMysql;
    private long timeoutMs = -1;
    private boolean knowsTimeouts = true;
    /** The database's own isolation level, and the one that the connection has. */
    private int ownLevel;
    private int level;
    private boolean isReadOnly;

    Session(Output output) {
        this.output = output;
        setDaemon(true);
    }

    /** Ends it, whatever it is doing. */
    void close() {
        isClosing = true;
        asked.add(END);
        Connection busy = connection;
        if (busy != null) {
            // Drivers may wait in this; the reader of lines must not.
            Thread aborting = new Thread(() -> abort(busy));
            aborting.setDaemon(true);
            aborting.start();
        }
    }

    private static void abort(Connection connection) {
        try {
            connection.abort(Runnable::run);
        } catch (SQLException | RuntimeException | LinkageError error) {
            // It is given up either way.
        }
    }

    @Override
    public void run() {
        while (true) {
            Map<String, Object> message;
            try {
                message = asked.take();
            } catch (InterruptedException error) {
                return;
            }
            if (message == END) {
                return;
            }
            Object ask = message.get("ask");
            boolean isOpening = message.containsKey("open");
            try {
                List<Object> results = new ArrayList<>();
                if (isOpening) {
                    open(Json.object(message.get("open")));
                } else {
                    steps(ask, Json.object(message.get("run")), results);
                }
                output.say(Map.of("ask", ask, "ok", Map.of("results", results)));
            } catch (Doubtful error) {
                tell(ask, "unknown", new Verdict("other", "01000", false), error.getMessage());
            } catch (Throwable error) {
                Verdict verdict = Verdict.of(error, isMysql);
                boolean isDefinite = verdict.definite() || isOpening;
                tell(ask, isDefinite ? "failed" : "unknown", verdict, Verdict.text(error));
            }
        }
    }

    private void tell(Object ask, String outcome, Verdict verdict, String text) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("class", verdict.kind());
        told.put("code", verdict.code());
        told.put("text", text);
        output.say(Map.of("ask", ask, outcome, told));
    }

    private void open(Map<String, Object> open) throws SQLException {
        Properties properties = new Properties();
        for (String name : List.of("user", "password")) {
            Object value = open.get(name);
            if (value != null && !value.equals("")) {
                properties.setProperty(name, (String) value);
            }
        }
        Json.object(open.get("options")).forEach((name, value) -> properties.setProperty(name, (String) value));
        connection = DriverManager.getConnection((String) open.get("url"), properties);
        if (isClosing) {
            abort(connection);
        }
        connection.setAutoCommit(true);
        // Some drivers ask the server for it, so that it is asked once.
        ownLevel = connection.getTransactionIsolation();
        level = ownLevel;
        String product = connection.getMetaData().getDatabaseProductName();
        isMysql = product != null && (product.contains("MySQL") || product.contains("MariaDB"));
    }

    private void steps(Object ask, Map<String, Object> run, List<Object> results) throws Exception {
        limit((Long) run.get("timeout_ms"));
        Long pageRows = (Long) run.get("page_rows");
        for (Object one : Json.list(run.get("steps"))) {
            Map<String, Object> step = Json.object(one);
            if (step.containsKey("begin")) {
                begin(Json.object(step.get("begin")));
                results.add(Map.of());
            } else if (step.containsKey("commit")) {
                connection.clearWarnings();
                connection.commit();
                try {
                    look(connection.getWarnings(), true);
                    leaveBlock();
                } catch (SQLException error) {
                    // It is committed, whatever an error says that comes behind that.
                    throw new SQLException("after the commit: " + Verdict.text(error), "08000", error);
                }
                results.add(Map.of());
            } else if (step.containsKey("rollback")) {
                if (!connection.getAutoCommit()) {
                    connection.rollback();
                    leaveBlock();
                }
                results.add(Map.of());
            } else {
                results.add(statement(ask, step, pageRows));
            }
        }
    }

    /** JDBC 4.1, "setNetworkTimeout": so that nothing hangs for ever on a network that is cut. */
    private void limit(long asked) {
        long limit = Math.min(asked, Integer.MAX_VALUE);
        if (!knowsTimeouts || limit == timeoutMs) {
            return;
        }
        timeoutMs = limit;
        try {
            Executor here = Runnable::run;
            connection.setNetworkTimeout(here, (int) limit);
        } catch (SQLException | RuntimeException | LinkageError error) {
            knowsTimeouts = false;
        }
    }

    private void begin(Map<String, Object> begin) throws SQLException {
        int wanted = begin.get("isolation") == null ? ownLevel : switch ((String) begin.get("isolation")) {
            case "READ UNCOMMITTED" -> Connection.TRANSACTION_READ_UNCOMMITTED;
            case "READ COMMITTED" -> Connection.TRANSACTION_READ_COMMITTED;
            case "REPEATABLE READ" -> repeatableRead();
            default -> Connection.TRANSACTION_SERIALIZABLE;
        };
        if (wanted != level) {
            connection.setTransactionIsolation(wanted);
            level = wanted;
        }
        if (Boolean.TRUE.equals(begin.get("read_only"))) {
            connection.setReadOnly(true);
            isReadOnly = true;
        }
        connection.setAutoCommit(false);
    }

    /** The level, or the next stricter one: NuoDB, for one, has no level of this name. */
    private int repeatableRead() throws SQLException {
        int named = Connection.TRANSACTION_REPEATABLE_READ;
        boolean isKnown = connection.getMetaData().supportsTransactionIsolationLevel(named);
        return isKnown ? named : Connection.TRANSACTION_SERIALIZABLE;
    }

    /** From now on each statement commits by itself. */
    private void leaveBlock() throws SQLException {
        connection.setAutoCommit(true);
        if (isReadOnly) {
            connection.setReadOnly(false);
            isReadOnly = false;
        }
        if (level != ownLevel) {
            connection.setTransactionIsolation(ownLevel);
            level = ownLevel;
        }
    }

    private Map<String, Object> statement(Object ask, Map<String, Object> step, Long pageRows) throws Exception {
        List<Object> pieces = Json.list(step.get("sql"));
        List<Object> parameters = Json.list(step.get("parameters"));
        String text = text(pieces);
        boolean isKept = text.length() <= LONGEST_PREPARED;
        PreparedStatement statement = isKept ? prepared(text) : connection.prepareStatement(text);
        try {
            for (int place = 0; place < parameters.size(); place++) {
                put(statement, place + 1, parameters.get(place));
            }
            statement.setFetchSize(pageRows == null ? 0 : pageRows.intValue());
            statement.clearWarnings();
            boolean hasRows = statement.execute();
            Map<String, Object> result = new LinkedHashMap<>();
            if (hasRows) {
                try (ResultSet rows = statement.getResultSet()) {
                    List<Object> read = rows(rows, ask, pageRows);
                    result.put("rows", read);
                    result.put("affected", (long) read.size());
                }
            } else {
                result.put("affected", (long) Math.max(statement.getUpdateCount(), 0));
            }
            if (connection.getAutoCommit()) {
                look(statement.getWarnings(), false);
            }
            return result;
        } finally {
            if (!isKept) {
                statement.close();
            }
        }
    }

    /** JDBC's placeholder is a question mark. */
    private static String text(List<Object> pieces) {
        StringBuilder text = new StringBuilder((String) pieces.get(0));
        for (Object piece : pieces.subList(1, pieces.size())) {
            text.append('?').append((String) piece);
        }
        return text.toString();
    }

    private PreparedStatement prepared(String text) throws SQLException {
        PreparedStatement known = prepared.get(text);
        if (known == null) {
            if (prepared.size() >= MOST_PREPARED) {
                for (PreparedStatement old : prepared.values()) {
                    old.close();
                }
                prepared.clear();
            }
            known = connection.prepareStatement(text);
            prepared.put(text, known);
        }
        return known;
    }

    private static void put(PreparedStatement statement, int place, Object value) throws SQLException {
        if (value == null) {
            statement.setNull(place, Types.NULL);
        } else if (value instanceof Long) {
            statement.setLong(place, (Long) value);
        } else {
            statement.setString(place, (String) value);
        }
    }

    /** All rows, or the last page of them, the others being sent. */
    private List<Object> rows(ResultSet rows, Object ask, Long pageRows) throws SQLException {
        List<Object> read = new ArrayList<>();
        int columns = rows.getMetaData().getColumnCount();
        boolean[] areNumbers = new boolean[columns];
        for (int column = 0; column < columns; column++) {
            int type = rows.getMetaData().getColumnType(column + 1);
            areNumbers[column] = type == Types.BIGINT || type == Types.INTEGER || type == Types.SMALLINT || type == Types.TINYINT;
        }
        while (rows.next()) {
            List<Object> row = new ArrayList<>(columns);
            for (int column = 0; column < columns; column++) {
                Object cell = areNumbers[column] ? (Object) rows.getLong(column + 1) : rows.getString(column + 1);
                row.add(rows.wasNull() ? null : cell);
            }
            read.add(row);
            if (pageRows != null && read.size() >= pageRows) {
                output.say(Map.of("ask", ask, "more", Map.of("rows", read)));
                read = new ArrayList<>();
            }
        }
        return read;
    }

    /*
     * PostgreSQL answers a commit whose wait for standbys is cut short with success and a warning: it is on one disk and perhaps nowhere
     * else.
     */
    private static void look(SQLWarning warning, boolean isCommit) throws Doubtful {
        for (SQLWarning one = warning; one != null; one = one.getNextWarning()) {
            String text = String.valueOf(one.getMessage());
            if (isCommit || "57P01".equals(one.getSQLState()) || text.contains("synchronous replication")) {
                throw new Doubtful(one);
            }
        }
    }
}
