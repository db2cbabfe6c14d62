import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as far as the protocol has it: objects, lists, texts, whole numbers, true, false, null. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object read(String text) {
        return new Json(text).value();
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        return (List<Object>) value;
    }

    private Object value() {
        blank();
        char first = text.charAt(at);
        switch (first) {
            case '{':
                return members();
            case '[':
                return elements();
            case '"':
                return string();
            case 't':
                at += 4;
                return true;
            case 'f':
                at += 5;
                return false;
            case 'n':
                at += 4;
                return null;
            default:
                int begin = at;
                while (at < text.length() && "+-0123456789".indexOf(text.charAt(at)) >= 0) {
                    at++;
                }
                return Long.parseLong(text.substring(begin, at));
        }
    }

    private Map<String, Object> members() {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        while (!ends('}')) {
            String name = string();
            blank();
            at++;
            members.put(name, value());
        }
        return members;
    }

    private List<Object> elements() {
        List<Object> elements = new ArrayList<>();
        at++;
        while (!ends(']')) {
            elements.add(value());
        }
        return elements;
    }

    /** Whether the object or list ends here; passes over that, or a comma. */
    private boolean ends(char end) {
        blank();
        boolean isEnd = text.charAt(at) == end;
        if (isEnd || text.charAt(at) == ',') {
            at++;
            blank();
        }
        return isEnd;
    }

    private void blank() {
        while (at < text.length() && Character.isWhitespace(text.charAt(at))) {
            at++;
        }
    }

    private String string() {
        StringBuilder read = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char sign = text.charAt(at);
            if (sign != '\\') {
                read.append(sign);
                continue;
            }
            at++;
            char escaped = text.charAt(at);
            switch (escaped) {
                case 'n' -> read.append('\n');
                case 't' -> read.append('\t');
                case 'r' -> read.append('\r');
                case 'b' -> read.append('\b');
                case 'f' -> read.append('\f');
                case 'u' -> {
                    read.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                }
                default -> read.append(escaped);
            }
        }
        at++;
        return read.toString();
    }

    static void write(Object value, StringBuilder text) {
        if (value instanceof Map<?, ?> members) {
            char before = '{';
            for (Map.Entry<?, ?> member : members.entrySet()) {
                text.append(before);
                write(member.getKey(), text);
                text.append(':');
                write(member.getValue(), text);
                before = ',';
            }
            text.append(members.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> elements) {
            text.append('[');
            for (int place = 0; place < elements.size(); place++) {
                text.append(place > 0 ? "," : "");
                write(elements.get(place), text);
            }
            text.append(']');
        } else if (value instanceof String string) {
            quote(string, text);
        } else {
            text.append(value);
        }
    }

    private static void quote(String string, StringBuilder text) {
        text.append('"');
        for (int place = 0; place < string.length(); place++) {
            char sign = string.charAt(place);
            if (sign == '"' || sign == '\\') {
                text.append('\\').append(sign);
            } else if (sign < ' ' || Character.isSurrogate(sign)) {
                text.append(String.format("\\u%04x", (int) sign));
            } else {
                text.append(sign);
            }
        }
        text.append('"');
    }
}
