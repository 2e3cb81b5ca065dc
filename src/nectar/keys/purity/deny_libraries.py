"""The same as deny.py has of the standard library, for libraries of third parties and of tests. Data only."""

from __future__ import annotations

from typing import Final

LIBRARIES: Final[dict[str, dict[str, str]]] = {
    "numpy": {
        "file": "load loadtxt genfromtxt fromfile fromregex memmap save savez savez_compressed savetxt ndarray.tofile "
        "ndarray.dump",
        "global state": "seterr seterrcall setbufsize set_printoptions get_printoptions geterr geterrcall getbufsize",
        "identity": "shares_memory may_share_memory",
    },
    "pandas": {
        "file": "read_* ExcelFile ExcelWriter HDFStore DataFrame.to_csv DataFrame.to_json DataFrame.to_html "
        "DataFrame.to_string DataFrame.to_latex DataFrame.to_markdown DataFrame.to_xml DataFrame.to_parquet "
        "DataFrame.to_orc DataFrame.to_pickle DataFrame.to_excel DataFrame.to_hdf DataFrame.to_feather "
        "DataFrame.to_stata Series.to_csv Series.to_json Series.to_string Series.to_latex Series.to_markdown "
        "Series.to_pickle Series.to_excel Series.to_hdf",
        "database": "DataFrame.to_sql Series.to_sql",
        "input": "DataFrame.to_clipboard Series.to_clipboard",
        "clock": "Timestamp.now Timestamp.utcnow Timestamp.today Period.now",
        "environment": "Timestamp.fromtimestamp",
        "global state": "set_option reset_option get_option describe_option set_eng_float_format",
        "random": "DataFrame.sample Series.sample",
        "names": "eval DataFrame.eval DataFrame.query",
    },
    "polars": {
        "file": "read_* scan_* DataFrame.write_* LazyFrame.sink_* DataFrame.deserialize LazyFrame.deserialize "
        "DataFrame.serialize LazyFrame.serialize",
        "database": "DataFrame.write_database",
        "input": "DataFrame.write_clipboard read_clipboard",
        "global state": "set_random_seed Config enable_string_cache disable_string_cache StringCache",
        "random": "DataFrame.sample Series.sample Series.shuffle Expr.sample Expr.shuffle",
        "environment": "thread_pool_size show_versions",
        "names": "sql SQLContext SQLContext.register_globals",
    },
    "patsy": {"names": "dmatrix dmatrices incr_dbuilder incr_dbuilders"},
    "formulaic": {"names": "model_matrix"},
    "statsmodels.formula.api": {"names": "*"},
    "statsmodels.base.model": {"names": "Model.from_formula"},
    "pyarrow": {
        "file": "memory_map create_memory_map OSFile MemoryMappedFile input_stream output_stream",
        "global state": "set_cpu_count set_io_thread_count set_memory_pool register_extension_type "
        "unregister_extension_type",
        "environment": "cpu_count io_thread_count",
    },
    # People register functions; and a seed may be given that says that there is none.
    "pyarrow.compute": {"global state": "call_function get_function function_registry register_*", "random": "random"},
    "pyarrow.parquet": {
        "file": "read_table read_pandas read_schema read_metadata write_table write_to_dataset write_metadata "
        "ParquetFile ParquetDataset ParquetWriter"
    },
    "pyarrow.csv": {"file": "read_csv open_csv write_csv CSVWriter"},
    "pyarrow.json": {"file": "read_json open_json"},
    "pyarrow.feather": {"file": "read_feather read_table write_feather FeatherDataset"},
    "pyarrow.orc": {"file": "read_table write_table ORCFile ORCWriter"},
    "pyarrow.dataset": {"file": "dataset parquet_dataset write_dataset FileSystemDataset FileSystemDatasetFactory"},
    "requests": {
        "network": "get post put patch delete head options request session Session Session.request Session.send "
        "Session.get Session.post Session.put Session.patch Session.delete Session.head Session.options"
    },
    "requests.adapters": {"network": "HTTPAdapter.send"},
    "requests.utils": {"environment": "get_environ_proxies getproxies resolve_proxies should_bypass_proxies"},
    "platformdirs": {"environment": "user_* site_* PlatformDirs AppDirs"},
    "appdirs": {"environment": "user_* site_* AppDirs"},
    "httpx": {"network": "get post put patch delete head options request stream Client AsyncClient HTTPTransport"},
    "urllib3": {
        "network": "request PoolManager ProxyManager HTTPConnectionPool HTTPSConnectionPool connection_from_url "
        "proxy_from_url"
    },
    "urllib3.connection": {"network": "HTTPConnection HTTPSConnection"},
    "aiohttp": {"network": "ClientSession request TCPConnector UnixConnector"},
    "boto3": {"network": "client resource Session setup_default_session"},
    "botocore.session": {"network": "get_session Session"},
    "arrow": {"clock": "now utcnow Arrow.now Arrow.utcnow ArrowFactory.now ArrowFactory.utcnow"},
    "freezegun.api": {
        "clock": "fake_time fake_time_ns fake_localtime fake_gmtime fake_strftime FakeDatetime.now FakeDatetime.utcnow "
        "FakeDatetime.today FakeDate.today"
    },
    "igraph._igraph": {  # draws in native code, by a generator of the process or, in other threads, of its own
        "random": "GraphBase.Asymmetric_Preference GraphBase.Barabasi GraphBase.Chung_Lu GraphBase.Degree_Sequence "
        "GraphBase.Erdos_Renyi GraphBase.Establishment GraphBase.Forest_Fire GraphBase.GRG GraphBase.Growing_Random "
        "GraphBase.K_Regular GraphBase.Preference GraphBase.Random_Bipartite GraphBase._Random_Bipartite "
        "GraphBase.Recent_Degree GraphBase.SBM GraphBase.Static_* GraphBase.Tree_Game GraphBase.Watts_Strogatz "
        "GraphBase.random_walk GraphBase.rewire GraphBase.rewire_edges GraphBase.layout_* GraphBase._layout_* "
        "GraphBase.community_*"
    },
    "ephem": {"clock": "Observer now"},
    "pydantic.types": {"clock": "FutureDate FutureDatetime PastDate PastDatetime"},
    "rdkit.Chem.rdDistGeom": {"random": "EmbedMolecule EmbedMultipleConfs"},
    "sympy": {"random": "Dummy"},  # numbers itself, from a random number on
    "pendulum": {"clock": "now today tomorrow yesterday DateTime.now DateTime.utcnow DateTime.today"},
    "fsspec": {"file": "open open_files open_local filesystem url_to_fs get_mapper get_fs_token_paths"},
    "sqlalchemy": {"database": "create_engine create_mock_engine create_pool_from_url"},
    "sqlalchemy.ext.asyncio": {"database": "create_async_engine"},
    "sqlalchemy.orm": {"database": "Session sessionmaker"},
    "psycopg": {"database": "connect Connection AsyncConnection"},
    "psycopg2": {"database": "connect"},
    "asyncpg": {"database": "connect create_pool"},
    "pymysql": {"database": "connect Connection"},
    "MySQLdb": {"database": "connect"},
    "mysql.connector": {"database": "connect"},
    "oracledb": {"database": "connect create_pool"},
    "pyodbc": {"database": "connect"},
    "snowflake.connector": {"database": "connect"},
    "google.cloud.bigquery": {"database": "Client"},
    "google.cloud.storage": {"network": "Client"},
    "clickhouse_connect": {"database": "get_client"},
    "redis": {"database": "Redis StrictRedis RedisCluster from_url"},
    "pymongo": {"database": "MongoClient AsyncMongoClient"},
    "elasticsearch": {"database": "Elasticsearch AsyncElasticsearch"},
    "duckdb": {"database": "connect sql query execute read_* from_* table view default_connection"},
    "paramiko": {"network": "SSHClient Transport"},
    "websockets": {"network": "connect serve"},
    "grpc": {"network": "insecure_channel secure_channel"},
    "joblib": {"dynamic code": "load", "file": "dump", "environment": "cpu_count"},
    "cloudpickle": {"dynamic code": "load loads"},
    "dill": {"dynamic code": "load loads load_session"},
    "yaml": {"dynamic code": "unsafe_load unsafe_load_all full_load"},
    "dotenv": {"environment": "load_dotenv dotenv_values find_dotenv"},
    "psutil": {"environment": "*"},
    # style sheets and schemas name files that libxml2 reads unseen; people register functions and classes
    "lxml.etree": {
        "file": "XSLT XMLSchema RelaxNG Schematron _ElementTree.xinclude XInclude",
        "global state": "FunctionNamespace ElementNamespaceClassLookup set_element_class_lookup set_default_parser",
    },
    "h5py": {"file": "File"},
    "xarray": {"file": "open_*"},
    "geopandas": {"file": "read_*"},
    "openpyxl": {"file": "load_workbook"},
    "PIL.Image": {"file": "open", "random": "effect_noise Image.effect_spread"},
    "imageio": {"file": "imread imwrite mimread"},
    "cv2": {
        "file": "imread* imwrite* imcount haveImage* VideoCapture VideoWriter FileStorage CascadeClassifier "
        "Algorithm.save HOGDescriptor.load HOGDescriptor.save",
        "random": "randu randn randShuffle kmeans grabCut",
        "global state": "set* redirectError",
        "clock": "getTickCount getCPUTickCount TickMeter",
        "environment": "get*Num* getBuildInformation useOptimized imshow waitKey* namedWindow destroy*",
    },
    "cv2.utils.fs": {"file": "*"},
    "cv2.dnn": {"file": "read* Net.readFromModelOptimizer"},
    "scipy.io": {"file": "loadmat savemat mmread mmwrite"},
    "sklearn.model_selection": {"random": "train_test_split"},
    "dask.dataframe": {"file": "read_*"},
    "dask.bag": {"file": "read_text read_avro"},
    "torch": {
        "file": "load save",
        "random": "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal",
        "global state": "manual_seed seed initial_seed set_rng_state get_rng_state set_default_dtype set_num_threads",
        "environment": "get_num_threads",
    },
    # what others draw on comes into it, and how it is shown
    "matplotlib": {"global state": "get_backend"},
    "matplotlib.pyplot": {
        "global state": "gcf gca gci sci get_fignums get_figlabels fignum_exists isinteractive get_current_fig_manager"
    },
    "unittest.mock": {"global state": "patch"},
    "wrapt": {
        "global state": "wrap_function_wrapper wrap_object wrap_object_attribute patch_function_wrapper "
        "transient_function_wrapper apply_patch"
    },
    "threadpoolctl": {"global state": "threadpool_limits threadpool_info ThreadpoolController"},
    "docopt": {"environment": "docopt"},
}
