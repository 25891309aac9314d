import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/**
 * Iceberg's own REST catalog over a SQLite file and a folder. The same adapter and servlet as in Iceberg's RESTCatalogServer,
 * which can't be used as it is: it listens on every address of the machine, and on a port that has to be known beforehand.
 *
 * <p>Arguments: the folder for catalog and warehouse, and the file that the URI is written into once requests are answered.
 */
public final class RestServer {
  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]).toAbsolutePath();
    Path ready = Path.of(arguments[1]);
    Map<String, String> properties =
        Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri", "jdbc:sqlite:" + folder.resolve("catalog.db"),
            "jdbc.schema-version", "V1",
            // SQLite has one writer at a time.
            "clients", "1",
            "warehouse", folder.resolve("warehouse").toUri().toString().replaceAll("/$", ""));
    var catalog = CatalogUtil.buildIcebergCatalog("rest", properties, new Configuration());
    var context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    int port = ((ServerConnector) server.getConnectors()[0]).getLocalPort();
    // Renamed, so that whoever waits for the file never reads half of it.
    Path aside = Files.writeString(Path.of(ready + ".new"), "http://127.0.0.1:" + port);
    Files.move(aside, ready);
    server.join();
  }
}
